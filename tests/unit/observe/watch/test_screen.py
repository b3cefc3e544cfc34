import io
import math
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console
from tests.unit.observe.story import Teller, finished, started, step_event, training
from tests.unit.observe.watch.host_story import sampling

from tandem.observe.watch.screen import Screen
from tandem.observe.watch.state import WatchState
from tandem.observe.watch.troubles import Troubles
from tandem.runlog.event import RunFinished, SampleTranslated, StageStarted, WorkersLost

SCREENS = Path(__file__).with_name("screens")
NANO = 1_000_000_000


def drawn(
    state: WatchState, *, width: int = 80, rows: int = 23, later_s: int = 1, encoding: str = "utf-8"
) -> str:
    data = io.BytesIO()
    file = io.TextIOWrapper(data, encoding=encoding, errors="replace")
    console = Console(file=file, width=width, height=rows + 1, color_system=None)
    console.print(Screen(state=state, now_ns=state.last_time_ns + later_s * NANO, rows=rows))
    file.flush()
    return "".join(f"{line.rstrip()}\n" for line in data.getvalue().decode(encoding).splitlines())


@pytest.fixture
def state() -> WatchState:
    teller, state = Teller(), WatchState(run="first")
    for record in training(teller, steps=850, every=100):
        state.apply(record)
    lost = WorkersLost(attempt=1, exit_code=-9, rank=1, reason="killed by SIGKILL")
    state.apply(teller.tell(lost, rank=None))
    state.apply(teller.step(851, loss=math.nan, skipped=True))
    for number in range(760, 852):
        late = step_event(number)
        phases = {**late.phases, "exchange": 0.01, "backward": 0.14}
        state.apply(teller.tell(replace(late, phases=phases), rank=1))
    return state


@pytest.mark.parametrize(("width", "rows"), [(60, 23), (80, 23), (140, 39)])
def test_the_display_looks_as_it_did(state: WatchState, width: int, rows: int) -> None:
    assert drawn(state, width=width, rows=rows) == (SCREENS / f"{width}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [40, 60, 79, 80, 119, 120, 200])
@pytest.mark.parametrize("rows", [8, 12, 18, 23, 30, 60])
def test_the_display_keeps_within_the_terminal(state: WatchState, width: int, rows: int) -> None:
    lines = drawn(state, width=width, rows=rows).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert len(lines) <= rows


def test_a_low_terminal_keeps_what_matters_most(state: WatchState) -> None:
    text = drawn(state, rows=8)
    assert "step 851 of 1,000" in text
    assert "target tokens/s" in text
    assert "skipped" in text
    assert "source" not in text


def test_a_run_that_has_not_begun_to_train_is_shown() -> None:
    state = WatchState(run="first")
    state.apply(Teller().tell(StageStarted(stage="clean")))
    assert drawn(state).startswith("first · preparing data: clean\n")


def test_a_run_before_its_first_step_is_shown() -> None:
    state = WatchState(run="first")
    state.apply(Teller().tell(started()))
    assert "0 % step 0 of 1,000" in drawn(state)


def test_a_silent_run_says_for_how_long_and_promises_no_end(state: WatchState) -> None:
    text = drawn(state, later_s=125)
    assert "first · silent for 2 min 05 s (was training, attempt 2)" in text
    assert "left" not in text


def test_a_finished_run_says_why_and_has_no_time_left(state: WatchState) -> None:
    state.apply(Teller(state.last_time_ns).tell(finished(1000)))
    text = drawn(state)
    assert "first · finished: reached 1,000 steps, attempt 2" in text
    assert "left" not in text


def test_what_the_model_writes_cannot_steer_the_terminal(state: WatchState) -> None:
    sample = SampleTranslated(
        step=800, set="valid", number=0, source="[bold]a", reference="b\x1b[2J", hypothesis="c\nd"
    )
    state.samples = [sample]
    text = drawn(state)
    assert "[bold]a" in text
    assert "b\\x1b[2J" in text
    assert "c\\nd" in text


def test_a_terminal_without_unicode_gets_a_chart_of_signs(state: WatchState) -> None:
    text = drawn(state, rows=30, encoding="ascii")
    assert "-" * 80 in text
    assert "loss   7.09 #####-::." in text
    assert text.isascii()
    assert "?" not in text.replace("bicycle?", "")


def with_hosts(state: WatchState, *names: str, throttled: int | None = None) -> WatchState:
    start_ns = state.last_time_ns - 30 * NANO
    for name in names:
        for record in sampling(name, seconds=30, start_ns=start_ns, throttled=throttled):
            state.apply(record)
    return state


@pytest.mark.parametrize(("width", "rows"), [(80, 23), (200, 49)])
def test_hosts_look_as_they_did(state: WatchState, width: int, rows: int) -> None:
    text = drawn(with_hosts(state, "h1", "h2", "h3", throttled=2), width=width, rows=rows)
    assert text == (SCREENS / f"hosts-{width}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [40, 66, 80, 110, 120, 200])
@pytest.mark.parametrize("rows", [8, 14, 23, 49])
def test_many_hosts_with_long_names_keep_within_the_terminal(
    state: WatchState, width: int, rows: int
) -> None:
    names = [f"gpu-node-of-the-large-cluster-{number}.example.org" for number in range(40)]
    lines = drawn(with_hosts(state, *names), width=width, rows=rows).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert len(lines) <= rows


def test_many_hosts_on_a_large_terminal_are_all_there_with_their_whole_names(state: WatchState) -> None:
    names = [f"gpu-node-{number:02}.cluster.example.org" for number in range(16)]
    text = drawn(with_hosts(state, *names), width=200, rows=49)
    assert all(f"\n{name}  4 GPUs" in text for name in names)
    assert "more hosts" not in text


@pytest.mark.parametrize("width", [40, 50, 60, 70])
def test_on_a_narrow_terminal_columns_are_left_out_and_none_is_cut(state: WatchState, width: int) -> None:
    state.troubles = Troubles()
    state.samples = []
    text = drawn(with_hosts(state, "h1"), width=width, rows=40)
    assert "…" not in text
    assert all(word in text for word in ("first · training", "85 % step 851", "loss", "BLEU", "\nh1  4 GPUs"))


def test_hosts_that_have_no_row_are_counted(state: WatchState) -> None:
    text = drawn(with_hosts(state, *(f"h{number}" for number in range(9))), rows=23)
    assert "and 7 more hosts" in text


def test_a_finished_run_shows_no_hosts(state: WatchState) -> None:
    with_hosts(state, "h1").apply(Teller(state.last_time_ns).tell(finished(1000)))
    assert "GPUs" not in drawn(state)


def test_a_run_that_ended_without_a_reason_shows_no_hosts(state: WatchState) -> None:
    with_hosts(state, "h1").apply(Teller(state.last_time_ns).tell(RunFinished(reason=""), rank=None))
    assert "no sample" not in drawn(state, later_s=600)


def test_the_status_is_seen_however_long_the_name_of_the_run(state: WatchState) -> None:
    state.run = "a-run-with-a-name-" * 8
    assert "… · silent for 2 min 05 s (was training, attempt 2)" in drawn(state, later_s=125)


def test_the_pace_and_bleu_have_lines_of_their_own(state: WatchState) -> None:
    lines = drawn(state).splitlines()
    assert [line.split()[1] for line in lines if line.startswith(("tok/s", "BLEU"))] == ["100k", "24.3"]
