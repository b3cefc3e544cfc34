"""What a tool is given of a run, with a tool that only notes it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.observe.sinks.told_twice import RECIPE, REDONE_LOSS, described, sampled, told
from tests.unit.observe.story import Teller, step_event, write_log

from tandem.errors import TandemError
from tandem.lock import BusyError, holding
from tandem.observe.sinks import opened
from tandem.observe.sinks.bookmark import bookmark_path
from tandem.observe.sinks.curves import Point
from tandem.observe.sinks.forward import forward_run
from tandem.observe.sinks.opened import forwarding_to
from tandem.observe.sinks.tool import Ending, Opening
from tandem.runlog.event import RunFinished, SampleTranslated
from tandem.runlog.record import Record


class Noted:
    """A tool that keeps what it is given, and refuses it where it is told to."""

    id = "seven"

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.tables: list[tuple[int, int]] = []
        self.events: list[tuple[str, str]] = []
        self.events_step = 0
        self.facts: dict[str, str] = {}
        self.facts_steps: list[int] = []
        self.endings: list[Ending] = []
        self.openings: list[Opening] = []
        self.refuses_from = 10**9

    def open(self, _tool: str, opening: Opening) -> "Noted":
        self.openings.append(opening)
        return self

    def log_points(self, points: Sequence[Point]) -> None:
        if any(point.step >= self.refuses_from for point in points):
            raise ConnectionError("no answer\nfrom the server")
        self.points += points

    def log_translations(self, step: int, samples: Sequence[SampleTranslated]) -> None:
        self.tables.append((step, len(samples)))

    def log_events(self, step: int, lines: Sequence[tuple[str, str]]) -> None:
        self.events, self.events_step = list(lines), step

    def log_facts(self, step: int, facts: Mapping[str, str]) -> None:
        self.facts |= facts
        self.facts_steps.append(step)

    def close(self, ending: Ending) -> None:
        self.endings.append(ending)

    def curve(self, name: str) -> list[tuple[int, float]]:
        return [(point.step, point.numbers[name]) for point in self.points if name in point.numbers]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Noted:
    noted = Noted()
    monkeypatch.setattr(opened, "open_tool", noted.open)
    return noted


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "story"
    folder.mkdir()
    (folder / "recipe.yaml").write_bytes(RECIPE.read_bytes())
    return folder


def forward(run: Path) -> None:
    """What is there now, and no more."""
    with forwarding_to("wandb", run) as forwarder:
        forward_run(run, forwarder, until=lambda: True)


def test_everything_is_forwarded_with_the_run_s_own_names_and_times(run: Path, tool: Noted) -> None:
    records = list(told(Teller()))
    write_log(run, records)
    forward(run)
    assert [step for step, _ in tool.curve("train_loss")] == list(range(1, 61))
    assert [step for step, _ in tool.curve("BLEU")] == [20, 40, 60]
    assert tool.curve("eval_loss")
    assert {value for _, value in tool.curve("system/alpha/cpu_share")} == {0.25}
    assert not tool.curve("system/alpha/gpu1/power_w")
    assert tool.points[0].numbers["elapsed_s"] == pytest.approx(0.25)
    assert tool.tables == [(20, 2), (40, 2), (60, 2)]
    assert tool.facts["BLEU signature"] == "nrefs:1"
    answers = [name for name in tool.facts if name[:2].isdigit()]
    assert len(answers) == 11
    assert tool.facts["01 duration"].startswith("measured: ")
    assert any("killed by SIGKILL" in text for _, text in tool.events)
    assert tool.events[0][0] == "2026-01-01 00:00:00"
    assert tool.events_step == 60
    assert tool.endings == ["well"]
    assert tool.openings[0].config["name"] == "demo"
    assert (tool.openings[0].project, tool.openings[0].name, tool.openings[0].id) == ("tandem", "story", "")


def test_what_is_done_again_is_dropped_as_far_as_the_tool_has_it(run: Path, tool: Noted) -> None:
    write_log(run, list(told(Teller())))
    forward(run)
    losses = dict(tool.curve("train_loss"))
    assert losses[50] == step_event(50).loss
    assert losses[51] == REDONE_LOSS


@pytest.mark.parametrize("cut", [0, 3, 40, 63, 75, 90, 118])
def test_whenever_it_was_stopped_it_goes_on_and_gives_nothing_twice(run: Path, tool: Noted, cut: int) -> None:
    records = list(told(Teller()))
    write_log(run, records[:cut] or records[:1])
    forward(run)
    write_log(run, records[cut or 1 :])
    forward(run)
    forward(run)
    assert [step for step, _ in tool.curve("train_loss")] == list(range(1, 61))
    assert [step for step, _ in tool.curve("BLEU")] == [20, 40, 60]
    assert [step for step, _ in tool.tables] == [20, 40, 60]
    times = [point.time_ns for point in tool.points if "system/alpha/cpu_share" in point.numbers]
    assert times == sorted(set(times))
    assert [opening.id for opening in tool.openings] == ["", "seven", "seven"]


def put_back(records: list[Record], since: int, seconds: int) -> list[Record]:
    """As of a clock that was put back before a record."""
    late = [replace(each, time_ns=each.time_ns - seconds * 10**9) for each in records[since:]]
    return [*records[:since], *late]


@pytest.mark.parametrize("cut", [30, 40, 44])
def test_a_clock_that_was_put_back_loses_nothing(run: Path, tool: Noted, cut: int) -> None:
    records = put_back(list(told(Teller())), 40, 3600)
    write_log(run, records[:cut])
    forward(run)
    write_log(run, records[cut:])
    forward(run)
    assert [step for step, _ in tool.curve("train_loss")] == list(range(1, 61))
    assert [step for step, _ in tool.tables] == [20, 40, 60]


def test_samples_of_a_host_whose_clock_was_put_back_still_come(run: Path, tool: Noted) -> None:
    teller = Teller()
    records = [teller.tell(described(), rank=None)]
    records += [teller.tell(sampled(number / 100), after_s=1.0, rank=None) for number in range(60)]
    records = put_back(records, 31, 3600)
    write_log(run, records[:36])
    forward(run)
    write_log(run, records[36:])
    forward(run)
    values = [value for _, value in tool.curve("system/alpha/cpu_share")]
    assert len(values) == 3
    assert values == sorted(set(values))
    assert values[-1] > 0.35


def test_answers_that_the_tool_has_are_not_given_again(run: Path, tool: Noted) -> None:
    write_log(run, list(told(Teller())))
    forward(run)
    given = list(tool.facts_steps)
    assert given[-1] == 60
    forward(run)
    assert tool.facts_steps == given


def test_a_tool_that_refuses_is_one_sentence_and_gets_the_rest_the_next_time(run: Path, tool: Noted) -> None:
    write_log(run, list(told(Teller())))
    tool.refuses_from = 30
    with pytest.raises(
        TandemError, match="Weights & Biases does not take .*: no answer from the server; the"
    ):
        forward(run)
    assert [step for step, _ in tool.curve("train_loss")] == list(range(1, 21))
    tool.refuses_from = 10**9
    forward(run)
    assert [step for step, _ in tool.curve("train_loss")] == list(range(1, 61))


def test_it_follows_a_live_run_until_that_says_good_bye(run: Path, tool: Noted) -> None:
    records: list[Record] = list(told(Teller()))
    write_log(run, records[:30])
    held = [records[30:60], records[60:]]
    with forwarding_to("wandb", run) as forwarder:
        forward_run(run, forwarder, wait=lambda: write_log(run, held.pop(0) if held else []))
    assert not held
    assert tool.curve("train_loss")[-1][0] == 60


def test_a_run_that_failed_is_told_as_such_and_one_that_goes_on_as_such(run: Path, tool: Noted) -> None:
    records = list(told(Teller()))
    write_log(run, records[:-1])
    forward(run)
    assert not [name for name in tool.facts if name[:2].isdigit()]
    teller = Teller(records[-1].time_ns)
    write_log(run, [teller.tell(RunFinished(reason="failed: no such device"), rank=None)])
    forward(run)
    assert tool.endings == ["goes on", "badly"]


def test_another_name_than_before_is_refused(run: Path, tool: Noted) -> None:
    write_log(run, list(told(Teller()))[:5])
    forward(run)
    with (
        pytest.raises(TandemError, match="--project tandem --name story before"),
        forwarding_to("wandb", run, project="other"),
    ):
        pass


def test_a_bookmark_that_is_spoilt_is_named(run: Path, tool: Noted) -> None:
    path = bookmark_path(run, "wandb")
    path.parent.mkdir()
    path.write_text(json.dumps({"id": "x", "colour": "red"}))
    with pytest.raises(TandemError, match=r"wandb\.json cannot be understood: remove it"):
        forward(run)


def test_two_at_once_are_refused(run: Path, tool: Noted) -> None:
    (run / "forward").mkdir()
    with holding(run / "forward/wandb"), pytest.raises(BusyError):
        forward(run)


def test_a_tool_that_is_not_there_is_one_sentence_with_the_cure(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem.observe.sinks.tool.find_spec", lambda _name: None)
    for name, sentence in (
        ("mlflow", r"MLflow is not installed: pip install 'tandem-nmt\[mlflow\]'"),
        ("comet", "choose one of wandb, mlflow, trackio"),
    ):
        with pytest.raises(TandemError, match=sentence), forwarding_to(name, run):
            pass
