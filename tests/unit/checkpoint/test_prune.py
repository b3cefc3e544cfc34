"""Freeing room: what goes, what never does, and what an interrupt leaves."""

import errno
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.unit.observe.story import Teller, finished, training, write_log

from tandem.artefact import building
from tandem.checkpoint import prune as module
from tandem.checkpoint.layout import KIND, VERSION, remove, step_folder, step_of
from tandem.checkpoint.listing import Scores, list_checkpoints
from tandem.checkpoint.prune import Plan, plan_pruning, prune
from tandem.errors import TandemError
from tandem.lock import BusyError, beside, holding
from tandem.runlog.event import Event, RunFinished

SIZE = 10_000


def save(run: Path, step: int, *, loss: float | None = None, bleu: float | None = None) -> Path:
    target = step_folder(run / "checkpoints", step)
    with building(target, kind=KIND, version=VERSION, fingerprint="x") as build:
        (build.path / "model.safetensors").write_bytes(bytes([step % 256]) * SIZE)
        build.facts = {"scores": Scores(loss=loss, bleu=bleu).to_json()}
    return target


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Six checkpoints: the third is best by loss, the second by BLEU."""
    run = tmp_path / "run"
    scores = ((5.0, 1.0), (2.0, 9.0), (1.0, 8.0), (3.0, 7.0), (3.0, 6.0), (3.0, 5.0))
    for number, (loss, bleu) in enumerate(scores, start=1):
        save(run, 100 * number, loss=loss, bleu=bleu)
    return run


def steps(run: Path) -> list[int]:
    return [info.step for info in list_checkpoints(run / "checkpoints") if info.is_complete]


def going(plan: Plan) -> list[int]:
    return [info.step for info in plan.goes]


def log(run: Path, *events: Event) -> None:
    teller = Teller()
    write_log(run, [*training(teller, steps=3), *(teller.tell(event) for event in events)])


def test_looking_changes_nothing(run: Path) -> None:
    before = sorted(run.parent.rglob("*"))
    plan = plan_pruning(run)
    assert going(plan) == [100, 400, 500]
    assert plan.bytes > 3 * SIZE
    assert sorted(run.parent.rglob("*")) == before


def test_the_newest_and_the_best_stay(run: Path) -> None:
    freed = prune(run).bytes
    assert steps(run) == [200, 300, 600]
    assert freed > 3 * SIZE
    assert going(plan_pruning(run)) == []


def test_more_of_the_newest_stay_where_asked(run: Path) -> None:
    prune(run, keep=3)
    assert steps(run) == [200, 300, 400, 500, 600]


@pytest.mark.parametrize("keep", [0, -3])
def test_the_newest_cannot_be_given_up(run: Path, keep: int) -> None:
    with pytest.raises(TandemError, match="keep at least 1"):
        plan_pruning(run, keep=keep)
    with pytest.raises(TandemError, match="keep at least 1"):
        prune(run, keep=keep)


def test_the_newest_whole_one_stays_where_newer_ones_are_damaged(run: Path) -> None:
    (step_folder(run / "checkpoints", 600) / "model.safetensors").unlink()
    plan = prune(run)
    assert steps(run) == [200, 300, 500]
    assert [info.step for info in plan.damaged] == [600]
    assert step_folder(run / "checkpoints", 600).is_dir()


def test_one_that_is_damaged_inside_does_not_count_as_the_newest_or_the_best(run: Path) -> None:
    for step in (600, 300):
        weights = step_folder(run / "checkpoints", step) / "model.safetensors"
        weights.write_bytes(b"x" + weights.read_bytes()[1:])
    plan = prune(run)
    assert going(plan) == [100, 400]
    assert {info.step for info in plan.damaged} == {300, 600}
    assert step_folder(run / "checkpoints", 500).is_dir()


def test_what_is_no_checkpoint_stays(run: Path, tmp_path: Path) -> None:
    checkpoints = run / "checkpoints"
    (checkpoints / "notes.txt").write_text("mine")
    (checkpoints / "step-mine").mkdir()
    (checkpoints / "step-00000100.rejected").mkdir()
    for name in ("mine.removed", "step-00000100.mine.removed", "step-1.removed"):
        (checkpoints / name).mkdir()
        (checkpoints / name / "precious.txt").write_text("mine")
    foreign = tmp_path / "foreign"
    shutil.copytree(step_folder(checkpoints, 100), foreign)
    (checkpoints / "step-00000050").symlink_to(foreign)
    prune(run)
    left = {path.name for path in checkpoints.iterdir()}
    assert {"notes.txt", "step-mine", "step-00000100.rejected", "step-00000050"} <= left
    assert {"mine.removed", "step-00000100.mine.removed", "step-1.removed"} <= left
    assert (foreign / "model.safetensors").exists()


def test_a_folder_of_checkpoints_that_is_a_link_is_left_alone(run: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "checkpoints").symlink_to(run / "checkpoints")
    assert "is a link" in plan_pruning(tmp_path / "other").refusal
    with pytest.raises(TandemError, match="is a link"):
        prune(tmp_path / "other")
    assert len(steps(run)) == 6


def test_a_run_that_a_process_holds_is_left_alone(run: Path) -> None:
    with holding(run):
        assert "being trained" in plan_pruning(run).refusal
        with pytest.raises(BusyError):
            prune(run)
    assert len(steps(run)) == 6


def test_a_run_whose_log_grows_is_left_alone_though_nobody_holds_it(run: Path) -> None:
    log(run)
    assert going(plan_pruning(run)) == []
    with pytest.raises(TandemError, match="being trained"):
        prune(run)


def test_a_rank_of_an_earlier_start_that_ended_does_not_hide_that_the_run_goes_on(run: Path) -> None:
    teller = Teller()
    first = [teller.tell(RunFinished(reason="asked to stop"), rank=3)]
    write_log(run, [*first, *training(teller, steps=3)])
    assert plan_pruning(run).refusal


@pytest.mark.parametrize("spoil", [b"", b'{"schema":1,"ti'])
def test_a_log_without_a_whole_last_line_says_nothing_of_an_end(run: Path, spoil: bytes) -> None:
    log(run, finished(3), RunFinished(reason="completed"))
    path = run / "log" / "rank-00000.jsonl"
    path.write_bytes(path.read_bytes() + spoil if spoil else b"")
    assert plan_pruning(run).refusal


def test_a_run_that_ended_can_be_pruned_at_once(run: Path) -> None:
    log(run, finished(3), RunFinished(reason="completed"))
    prune(run)
    assert steps(run) == [200, 300, 600]


def test_a_run_that_was_killed_can_be_pruned_when_it_was_quiet_for_long(run: Path) -> None:
    log(run)
    long_ago = time.time() - 2 * module.QUIET_S
    os.utime(run / "log" / "rank-00000.jsonl", (long_ago, long_ago))
    prune(run)
    assert steps(run) == [200, 300, 600]


def test_what_killed_writers_left_goes_and_what_is_being_written_stays(run: Path) -> None:
    checkpoints = run / "checkpoints"
    for name in ("step-00000700.partial", "step-00000050.removed", "step-00000800.partial"):
        (checkpoints / name).mkdir()
        (checkpoints / name / "model.safetensors").write_bytes(b"0" * SIZE)
    assert plan_pruning(run).left_over_bytes == 3 * SIZE
    with holding(checkpoints / "step-00000800"):
        prune(run)
        assert (checkpoints / "step-00000800.partial").is_dir()
    assert not (checkpoints / "step-00000700.partial").exists()
    assert not (checkpoints / "step-00000050.removed").exists()


def test_nobody_can_train_while_checkpoints_are_removed(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[int] = []

    def watched(folder: Path) -> str:
        with pytest.raises(BusyError), holding(run):
            pass
        refused.append(step_of(folder))
        return remove(folder)

    monkeypatch.setattr(module, "remove", watched)
    prune(run)
    assert refused == [100, 400, 500]
    assert not beside(run, "lock").exists()


def test_what_a_disk_does_not_let_go_of_is_named_and_not_counted_as_free(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleting = shutil.rmtree

    def half(folder: Path, ignore_errors: bool = False) -> None:
        if folder.name != "step-00000400.removed":
            deleting(folder, ignore_errors=ignore_errors)
        elif folder.exists() and not ignore_errors:
            raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("tandem.checkpoint.layout.remove_tree", half)
    plan = prune(run)
    left = run / "checkpoints" / "step-00000400.removed"
    assert going(plan) == [100, 500]
    assert plan.stuck == {left: "Operation not permitted"}
    assert plan.bytes == sum(info.bytes for info in plan.goes)
    again = prune(run)
    assert (list(again.stuck), again.left_over, again.bytes) == ([left], (), 0)
    monkeypatch.undo()
    assert prune(run).left_over == (left,)
    assert steps(run) == [200, 300, 600]


def test_a_checkpoint_that_cannot_be_moved_keeps_no_other_from_going(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(folder: Path) -> str:
        if step_of(folder) == 100:
            raise PermissionError(errno.EACCES, "Permission denied")
        return remove(folder)

    monkeypatch.setattr(module, "remove", refused)
    plan = prune(run)
    assert going(plan) == [400, 500]
    assert plan.stuck == {step_folder(run / "checkpoints", 100): "Permission denied"}
    assert steps(run) == [100, 200, 300, 600]


KILLED = """
import os, shutil, sys
from pathlib import Path
from tandem.checkpoint import layout
from tandem.checkpoint.prune import prune

def half_deleted(folder, ignore_errors=False):
    for path in sorted(Path(folder).glob("m*")) if Path(folder).exists() else []:
        path.unlink()
        os._exit(9)

layout.remove_tree = half_deleted
prune(Path(sys.argv[1]))
"""


def test_a_kill_in_the_middle_leaves_nothing_that_looks_whole_and_the_next_call_goes_on(run: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(run)], check=False)
    assert done.returncode == 9
    infos = list_checkpoints(run / "checkpoints")
    assert all(info.is_complete for info in infos)
    assert [info.step for info in infos] == [200, 300, 400, 500, 600]
    assert plan_pruning(run).left_over
    prune(run)
    assert steps(run) == [200, 300, 600]
    assert not list((run / "checkpoints").glob("*.removed"))


def test_a_run_without_checkpoints_has_nothing_to_give(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert prune(tmp_path / "run").bytes == 0
