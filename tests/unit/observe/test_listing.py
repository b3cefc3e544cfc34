"""Where runs stand, from the ends of their logs."""

import json
import platform
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.deep import deep_below
from tests.unit.observe.story import Teller, finished, started, training, write_log

from tandem.errors import TandemError
from tandem.lock import beside, holding
from tandem.observe import listing
from tandem.observe.listing import find_runs, list_run
from tandem.runlog.event import Event, RunFinished, RunImported, RunStarted
from tandem.runlog.layout import RunLayout

NANO = 1_000_000_000


def told(run: Path, *more: Event, steps: int = 400) -> int:
    """A run of 1,000 steps after so many; returns when its last word was."""
    teller = Teller()
    records = list(training(teller, steps=steps))
    records += [teller.tell(event) for event in more]
    write_log(run, records)
    return records[-1].time_ns


def test_a_run_that_goes_on_is_training_with_its_progress_and_best_scores(tmp_path: Path) -> None:
    last_ns = told(tmp_path / "run")
    found = list_run(tmp_path / "run", now_ns=last_ns + NANO)
    assert (found.state, found.step, found.text) == ("training", 400, "step 400 of 1,000")
    assert found.share == pytest.approx(0.4)
    assert found.best_bleu is not None
    assert found.best_bleu.step == 400
    assert found.best_loss is not None
    assert found.best_loss.step == 400
    assert found.last_time_ns == last_ns
    assert found.is_all_read


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ((finished(400), RunFinished(reason="completed")), "finished"),
        ((RunFinished(reason="stopped by SIGTERM"),), "stopped"),
        ((RunFinished(reason="failed: no memory"),), "failed"),
    ],
)
def test_a_run_that_ended_says_how(tmp_path: Path, events: tuple[Event, ...], state: str) -> None:
    told(tmp_path / "run", *events)
    found = list_run(tmp_path / "run")
    assert (found.state, found.way) == (state, "step 400 of 1,000")
    assert found.text in ("reached 400 steps", "stopped by SIGTERM", "failed: no memory")


def test_a_run_that_says_nothing_is_silent_and_lost_only_where_its_process_is_known_to_be_gone(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    last_ns = told(run)
    assert list_run(run, now_ns=last_ns + 120 * NANO).state == "silent"
    RunLayout(run).host_log(platform.node()).touch()
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    beside(run, "lock").write_text(json.dumps({"pid": process.pid}), encoding="utf-8")
    found = list_run(run, now_ns=last_ns + 8 * NANO)
    assert (found.state, found.status) == (
        "lost",
        "lost for 8.0 s: its process is gone without a word (was training)",
    )
    with holding(run):
        assert list_run(run, now_ns=last_ns + 3600 * NANO).state == "silent"


def test_an_imported_run_is_imported(tmp_path: Path) -> None:
    teller = Teller()
    imported = RunImported(tool="openseq2seq", files=(), times="steps", step_kind="mean", facts={})
    write_log(tmp_path / "run", [teller.tell(imported), *training(teller, steps=10)])
    found = list_run(tmp_path / "run")
    assert (found.state, found.status, found.share, found.text) == ("imported", "imported", None, "step 10")


def test_tokens_count_where_they_end_the_run_first(tmp_path: Path) -> None:
    teller = Teller()
    write_log(
        tmp_path / "run", [teller.tell(started(max_tokens=500_000)), *(teller.step(n) for n in range(1, 11))]
    )
    assert list_run(tmp_path / "run").share == pytest.approx(0.5)


def test_a_long_log_is_read_at_its_ends_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    last_ns = told(run, steps=2000)
    whole = list_run(run, now_ns=last_ns)
    monkeypatch.setattr(listing, "HEAD_BYTES", 20_000)
    monkeypatch.setattr(listing, "TAIL_BYTES", 120_000)
    ends = list_run(run, now_ns=last_ns)
    assert not ends.is_all_read
    assert (ends.state, ends.step, ends.share, ends.text) == (
        whole.state,
        whole.step,
        whole.share,
        whole.text,
    )
    assert ends.best_bleu == whole.best_bleu
    assert ends.last_time_ns == whole.last_time_ns


def garbage(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(3000))


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b'{"schema":1,"time_ns":17')


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(("spoil", "state"), [(garbage, "damaged"), (torn, "training"), (empty, "starting")])
def test_a_spoilt_log_is_listed(tmp_path: Path, spoil: Callable[[Path], None], state: str) -> None:
    run = tmp_path / "run"
    last_ns = told(run)
    spoil(run / "log" / "rank-00000.jsonl")
    found = list_run(run, now_ns=last_ns)
    assert found.state == state
    assert bool(found.trouble) == (state == "damaged")


def test_a_run_without_a_log_is_listed_with_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    found = list_run(tmp_path / "run")
    assert (found.state, found.trouble, found.last_time_ns) == ("damaged", "It has no log.", 0)


def test_sizes_are_apart_and_links_are_not_followed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for name, size in (("checkpoints/step-1/model", 1000), ("data/train/part", 300), ("recipe.yaml", 20)):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_bytes(b"0" * size)
    (run / "checkpoints" / "link").symlink_to(tmp_path)
    sizes = list_run(run).sizes
    assert sizes.data == 300
    assert 1000 <= sizes.checkpoints < 1500
    assert sizes.rest == 20
    assert sizes.whole == sizes.checkpoints + 320


def test_runs_are_found_in_a_folder_and_prepared_data_is_no_run(tmp_path: Path) -> None:
    told(
        tmp_path / "b",
        RunStarted(run="b", tandem="1", command=(), recipe="", world_size=1, host="h", python="3", torch=""),
    )
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "recipe.yaml").write_text("name: a\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "recipe.yaml").write_text("name: a\n")
    (tmp_path / "data" / "card.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("x")
    assert find_runs(tmp_path) == [tmp_path / "a", tmp_path / "b"]
    assert find_runs(tmp_path / "b") == [tmp_path / "b"]


@pytest.mark.parametrize("stray", ["log", "checkpoints", "recipe.yaml"])
def test_runs_are_found_beside_what_only_looks_like_a_part_of_a_run(tmp_path: Path, stray: str) -> None:
    told(tmp_path / "runs" / "one", steps=1)
    (tmp_path / "runs" / "two" / "checkpoints" / "step-00000001").mkdir(parents=True)
    (tmp_path / "runs" / stray).mkdir()
    assert find_runs(tmp_path / "runs") == [tmp_path / "runs" / "one", tmp_path / "runs" / "two"]


@pytest.mark.parametrize("part", ["log", "checkpoints", "recipe.yaml"])
def test_a_run_that_only_begins_is_a_run(tmp_path: Path, part: str) -> None:
    (tmp_path / "run" / part).mkdir(parents=True)
    (tmp_path / "run" / "data").mkdir()
    (tmp_path / "run" / "data" / "recipe.yaml").write_text("name: a\n")
    (tmp_path / "run" / "data" / "card.json").write_text("{}")
    assert find_runs(tmp_path / "run") == [tmp_path / "run"]
    assert find_runs(tmp_path) == [tmp_path / "run"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="no folder"):
        find_runs(tmp_path / "nothing")


def test_a_folder_that_lies_deep_takes_no_list_down(tmp_path: Path) -> None:
    told(tmp_path / "run")
    with deep_below(tmp_path / "run") as deep:
        (deep / "file").write_bytes(b"x" * 1_000_000)
        found = list_run(tmp_path / "run")
    assert found.state != "damaged"
    assert found.sizes.rest > 1_000_000


def test_a_row_is_there_whatever_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_folder: Path) -> int:
        raise RecursionError

    monkeypatch.setattr(listing, "tree_bytes", fail)
    told(tmp_path / "run")
    assert list_run(tmp_path / "run").trouble == "It cannot be read: RecursionError."
