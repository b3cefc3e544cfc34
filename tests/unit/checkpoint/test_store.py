"""The store: what is saved is found again, whole, whatever happened to the newest."""

import json
import math
import re
import shutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as really_wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.unit.checkpoint.small_run import (
    RECIPE,
    BuildStore,
    KeptLog,
    make_subword,
    save_all,
    snapshot,
    weights,
)

from tandem.checkpoint import store as store_module
from tandem.checkpoint.layout import clear_leftovers, step_folder
from tandem.checkpoint.listing import list_checkpoints
from tandem.checkpoint.restore import restore
from tandem.checkpoint.store import CheckpointStore, Snapshot
from tandem.checkpoint.write import Draft, write_checkpoint
from tandem.errors import TandemError
from tandem.runlog.event import CheckpointFailed, CheckpointRejected, CheckpointRemoved, CheckpointWritten


def steps(folder: Path) -> list[int]:
    return [info.step for info in list_checkpoints(folder) if info.is_complete]


def test_a_saved_step_comes_back_as_it_was(build_store: BuildStore, folder: Path) -> None:
    saved = snapshot(7, loss=2.5, bleu=31.0)
    save_all(build_store(), saved)
    found = build_store().newest()
    assert found is not None
    assert (found.step, found.folder, found.recipe_text) == (7, step_folder(folder, 7), RECIPE)
    assert (found.state, found.scores) == (saved.state, saved.scores)
    assert all(torch.equal(found.model[name], tensor) for name, tensor in saved.model.items())
    assert all(torch.equal(found.optimizer[name], tensor) for name, tensor in saved.optimizer.items())
    assert found.optimizer["step"].dtype == torch.int64


def test_a_checkpoint_is_made_of_these_files(build_store: BuildStore, folder: Path, log: KeptLog) -> None:
    save_all(build_store(), snapshot(4000))
    names = [
        "manifest.json",
        "model.safetensors",
        "optimizer.safetensors",
        "recipe.yaml",
        "state.json",
        "subword.model",
    ]
    assert sorted(path.name for path in (folder / "step-00004000").iterdir()) == names
    assert [path.name for path in folder.iterdir()] == ["step-00004000"]
    (written,) = log.all(CheckpointWritten)
    sizes = {name: (folder / "step-00004000" / name).stat().st_size for name in names}
    assert (written.step, written.folder) == (4000, "checkpoints/step-00004000")
    assert (written.files, written.bytes) == (sizes, sum(sizes.values()))


def test_the_same_run_gives_the_same_bytes(build_store: BuildStore, folder: Path) -> None:
    def content() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in step_folder(folder, 7).iterdir()}

    save_all(build_store(), snapshot(7, loss=1.0))
    before = content()
    save_all(build_store(), snapshot(7, loss=1.0))
    assert content() == before


def test_what_changes_after_save_returns_is_not_saved(
    build_store: BuildStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()

    def gated(folder: Path, draft: Draft) -> dict[str, int]:
        assert gate.wait(30)
        return write_checkpoint(folder, draft)

    monkeypatch.setattr(store_module, "write_checkpoint", gated)
    store, live = build_store(), snapshot(7)
    store.save(live)
    for tensor in (*live.model.values(), *live.optimizer.values()):
        tensor.zero_()
    gate.set()
    store.wait()
    found = store.newest()
    assert found is not None
    assert torch.equal(found.model["bias"], weights(7)["bias"])
    assert int(found.optimizer["step"]) == 7


def test_save_returns_while_the_disk_is_busy_and_the_next_one_waits(
    build_store: BuildStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, writers = threading.Event(), []

    def gated(target: Path, draft: Draft) -> dict[str, int]:
        writers.append(threading.current_thread())
        assert gate.wait(30)
        return write_checkpoint(target, draft)

    monkeypatch.setattr(store_module, "write_checkpoint", gated)
    store = build_store()
    store.save(snapshot(1))
    assert steps(folder) == []
    gate.set()
    store.save(snapshot(2))
    assert steps(folder)[0] == 1
    store.close()
    assert steps(folder) == [1, 2]
    assert threading.main_thread() not in writers


def test_buffers_are_used_again_and_follow_a_change_of_shape(build_store: BuildStore) -> None:
    store = build_store()
    save_all(store, snapshot(1), snapshot(2))
    other = Snapshot(
        step=3,
        model={"bias": torch.ones(9, dtype=torch.bfloat16)},
        optimizer={},
        state={},
        scores=snapshot(3).scores,
    )
    save_all(store, other)
    found = store.newest()
    assert found is not None
    assert found.model.keys() == {"bias"}
    assert torch.equal(found.model["bias"], other.model["bias"])


def test_memory_that_was_reserved_is_what_the_first_save_uses(build_store: BuildStore) -> None:
    saved = snapshot(3)
    store = build_store()
    store.reserve(model=saved.model, optimizer=saved.optimizer)
    held = [tensor for tensors in store._buffers.values() for tensor in tensors.values()]
    save_all(store, saved)
    used = [tensor for tensors in store._buffers.values() for tensor in tensors.values()]
    assert [tensor.data_ptr() for tensor in used] == [tensor.data_ptr() for tensor in held]
    found = build_store().newest()
    assert found is not None
    assert all(torch.equal(found.model[name], tensor) for name, tensor in saved.model.items())


def test_a_folder_without_checkpoints_has_no_newest(build_store: BuildStore) -> None:
    assert build_store().newest() is None


def test_saving_a_step_again_replaces_it(build_store: BuildStore, folder: Path) -> None:
    store = build_store()
    save_all(store, snapshot(5), snapshot(5, bleu=12.0))
    assert steps(folder) == [5]
    found = store.newest()
    assert found is not None
    assert found.scores.bleu == 12.0


def flip_a_byte(folder: Path, name: str = "model.safetensors") -> None:
    raw = bytearray((folder / name).read_bytes())
    raw[-1] ^= 1
    (folder / name).write_bytes(raw)


def cut(folder: Path) -> None:
    path = folder / "optimizer.safetensors"
    path.write_bytes(path.read_bytes()[:-9])


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


HARMS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a flipped bit": (flip_a_byte, r"model\.safetensors is damaged"),
    "a flipped bit in the state": (lambda f: flip_a_byte(f, "state.json"), r"state\.json is damaged"),
    "a truncated file": (cut, r"optimizer\.safetensors has \d+ bytes"),
    "a missing file": (lambda f: (f / "subword.model").unlink(), r"subword\.model is missing"),
    "a missing manifest": (lambda f: (f / "manifest.json").unlink(), "was not finished"),
    "a damaged manifest": (lambda f: flip_a_byte(f, "manifest.json"), "is damaged or was edited"),
    "an empty folder": (empty, "was not finished"),
}


@pytest.mark.parametrize(("harm", "reason"), HARMS.values(), ids=HARMS)
def test_a_damaged_newest_is_set_aside_and_the_one_before_is_used(
    build_store: BuildStore, folder: Path, log: KeptLog, harm: Callable[[Path], object], reason: str
) -> None:
    save_all(build_store(), snapshot(1), snapshot(2))
    harm(step_folder(folder, 2))
    store = build_store()
    found = store.newest()
    assert found is not None
    assert found.step == 1
    (rejected,) = log.all(CheckpointRejected)
    assert rejected.folder == "checkpoints/step-00000002"
    assert re.search(reason, rejected.reason)
    assert sorted(path.name for path in folder.iterdir()) == ["step-00000001", "step-00000002.rejected"]
    save_all(store, snapshot(2))
    again = build_store().newest()
    assert again is not None
    assert again.step == 2


def test_a_step_that_is_damaged_twice_is_set_aside_twice(build_store: BuildStore, folder: Path) -> None:
    save_all(build_store(), snapshot(1))
    for _ in range(2):
        save_all(build_store(), snapshot(2))
        flip_a_byte(step_folder(folder, 2))
        build_store().newest()
    names = ["step-00000001", "step-00000002.rejected", "step-00000002.rejected-2"]
    assert sorted(path.name for path in folder.iterdir()) == names


def test_where_none_is_whole_nothing_is_touched_and_the_run_does_not_begin_anew(
    build_store: BuildStore, folder: Path
) -> None:
    save_all(build_store(), snapshot(1), snapshot(2))
    for step in (1, 2):
        flip_a_byte(step_folder(folder, step))
    for _ in range(2):
        with pytest.raises(TandemError, match=r"No checkpoint in .* is whole: .*step-00000002"):
            build_store().newest()
    assert sorted(path.name for path in folder.iterdir()) == ["step-00000001", "step-00000002"]


def test_a_note_laid_into_a_checkpoint_does_not_spoil_it(build_store: BuildStore, folder: Path) -> None:
    save_all(build_store(), snapshot(1))
    (step_folder(folder, 1) / "note.txt").write_text("the good one")
    found = build_store().newest()
    assert found is not None
    assert found.step == 1


def test_leftovers_of_a_kill_are_cleared_at_the_next_start(build_store: BuildStore, folder: Path) -> None:
    save_all(build_store(), snapshot(1), snapshot(2))
    for name in ("step-00000003.partial", "step-00000001.removed"):
        (folder / name).mkdir()
        (folder / name / "model.safetensors").write_bytes(b"half")
    (folder / "step-00000003.lock").write_text('{"pid": 1}')
    (folder / "step-00000004.lock").write_text('{"pid": 1}')
    step_folder(folder, 2).rename(folder / "step-00000002.old")
    build_store()
    assert sorted(path.name for path in folder.iterdir()) == ["step-00000001", "step-00000002"]


def test_a_disk_that_refuses_is_logged_and_told_by_wait(
    build_store: BuildStore, folder: Path, log: KeptLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = build_store()
    save_all(store, snapshot(1))

    def refuse(target: Path, draft: Draft) -> dict[str, int]:
        target.with_name(f"{target.name}.partial").mkdir()
        raise OSError(5, "Input/output error", str(target))

    with monkeypatch.context() as patched:
        patched.setattr(store_module, "write_checkpoint", refuse)
        store.save(snapshot(2))
        with pytest.raises(TandemError, match=r"Cannot write .*step-00000002: Input/output error"):
            store.wait()
    (failed,) = log.all(CheckpointFailed)
    assert failed.step == 2
    assert [path.name for path in folder.iterdir()] == ["step-00000001"]
    save_all(store, snapshot(3))
    assert steps(folder) == [1, 3]


def test_whoever_waits_for_a_slow_disk_says_so_meanwhile(
    folder: Path, log: KeptLog, subword_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()

    def slow(target: Path, draft: Draft) -> dict[str, int]:
        assert released.wait(30)
        return write_checkpoint(target, draft)

    monkeypatch.setattr(store_module, "write_checkpoint", slow)
    monkeypatch.setattr(store_module, "WAIT_S", 0.001)
    store = CheckpointStore(
        folder,
        recipe_text=RECIPE,
        subword_folder=subword_folder,
        keep_last=1,
        keep_best=1,
        log=log,
        on_wait=released.set,
    )
    save_all(store, snapshot(1))
    assert steps(folder) == [1]


@pytest.mark.parametrize(("longest_s", "beats"), [(0.0, 599), (30.0, 599), (100.0, 999)])
def test_whoever_waits_for_a_disk_that_hangs_is_silent_in_the_end(
    folder: Path,
    log: KeptLog,
    subword_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    longest_s: float,
    beats: int,
) -> None:
    clock = SimpleNamespace(now_s=0.0)
    said: list[float] = []
    mended = threading.Event()
    mended.set()

    def slow(target: Path, draft: Draft) -> dict[str, int]:
        assert mended.wait(30)
        clock.now_s += longest_s
        return write_checkpoint(target, draft)

    def look(writing: Sequence[Future[Any]], *, timeout: float) -> Any:
        if not mended.is_set():
            clock.now_s += timeout
            if clock.now_s < longest_s + 2_000:
                return SimpleNamespace(done=set())
            mended.set()
        return really_wait(writing)

    monkeypatch.setattr(store_module, "write_checkpoint", slow)
    monkeypatch.setattr(store_module, "time", SimpleNamespace(monotonic=lambda: clock.now_s))
    monkeypatch.setattr(store_module, "wait", look)
    store = CheckpointStore(
        folder,
        recipe_text=RECIPE,
        subword_folder=subword_folder,
        keep_last=2,
        keep_best=1,
        log=log,
        on_wait=lambda: said.append(clock.now_s),
    )
    save_all(store, snapshot(1))
    mended.clear()
    save_all(store, snapshot(2))
    assert len(said) == beats
    assert steps(folder) == [1, 2]


def test_a_checkpoint_s_mark_is_of_what_is_learnt_and_not_of_where_it_lies(
    build_store: BuildStore, folder: Path
) -> None:
    save_all(build_store(), snapshot(1), snapshot(2))
    first, second = (restore(step_folder(folder, step)) for step in (1, 2))
    shutil.copytree(first.folder, folder / "copy")
    (folder / "copy" / "note.txt").write_text("laid beside")
    assert restore(folder / "copy").mark == first.mark
    assert second.mark != first.mark


def test_a_mistake_in_the_program_is_not_taken_for_a_full_disk(build_store: BuildStore) -> None:
    store = build_store()
    wrong = Snapshot(
        step=1,
        model={"x": torch.zeros(2, dtype=torch.complex64)},
        optimizer={},
        state={},
        scores=snapshot(1).scores,
    )
    store.save(wrong)
    with pytest.raises(KeyError):
        store.wait()


def test_a_state_that_json_cannot_hold_is_refused_at_once(build_store: BuildStore, folder: Path) -> None:
    wrong = Snapshot(step=1, model={}, optimizer={}, state={"best": math.nan}, scores=snapshot(1).scores)
    with pytest.raises(ValueError, match="not JSON compliant"):
        build_store().save(wrong)
    assert steps(folder) == []


def test_a_loss_that_is_no_number_is_kept_as_none(build_store: BuildStore, folder: Path) -> None:
    save_all(build_store(), snapshot(1, loss=math.nan, bleu=math.inf), snapshot(2, loss=9.0))
    first, second = list_checkpoints(folder)
    assert (first.scores.loss, first.scores.bleu) == (None, None)
    assert second.is_best_loss


def test_the_last_and_the_best_stay_and_the_others_go(
    build_store: BuildStore, folder: Path, log: KeptLog
) -> None:
    losses = [5.0, 1.0, 4.0, 3.5, 3.0, 2.9]
    bleus = [9.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    runs = [
        snapshot(n, loss=loss, bleu=bleu) for n, (loss, bleu) in enumerate(zip(losses, bleus, strict=True))
    ]
    save_all(build_store(keep_last=2, keep_best=1), *runs)
    assert steps(folder) == [0, 1, 4, 5]
    assert [removed.step for removed in log.all(CheckpointRemoved)] == [2, 3]
    assert len(list(folder.iterdir())) == 4


def test_scores_of_an_earlier_process_still_count(build_store: BuildStore, folder: Path) -> None:
    save_all(build_store(keep_last=1, keep_best=1), snapshot(1, loss=1.0))
    save_all(build_store(keep_last=1, keep_best=1), snapshot(2, loss=2.0), snapshot(3, loss=3.0))
    assert steps(folder) == [1, 3]


def test_keeping_none_keeps_the_newest(build_store: BuildStore, folder: Path) -> None:
    save_all(build_store(keep_last=0, keep_best=0), snapshot(1, loss=1.0), snapshot(2, loss=2.0))
    assert steps(folder) == [2]


def test_a_checkpoint_that_cannot_be_removed_does_not_fail_the_save(
    build_store: BuildStore, folder: Path, log: KeptLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(target: Path) -> None:
        raise PermissionError(13, "Permission denied", str(target))

    monkeypatch.setattr(store_module, "remove", refuse)
    save_all(build_store(keep_last=1, keep_best=0), snapshot(1), snapshot(2))
    assert steps(folder) == [1, 2]
    assert not log.all(CheckpointRemoved)


def test_a_reader_beside_the_writer_sees_whole_checkpoints_only(
    build_store: BuildStore, folder: Path
) -> None:
    save_all(build_store(), snapshot(1))
    store = build_store(keep_last=1, keep_best=0)
    seen: list[list[bool]] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set() or not seen:
            seen.append([info.is_complete for info in list_checkpoints(folder, verify=True)])

    reader = threading.Thread(target=read)
    reader.start()
    for step in range(2, 40):
        store.save(snapshot(step))
    store.wait()
    done.set()
    reader.join()
    assert all(all(whole) for whole in seen)


def test_preparing_the_data_anew_changes_no_later_checkpoint(
    build_store: BuildStore, folder: Path, tmp_path: Path, piece_model: bytes
) -> None:
    subword = make_subword(tmp_path / "subword", {"subword.model": piece_model})
    store: CheckpointStore = build_store(subword=subword)
    (subword / "subword.model").write_bytes(b"other")
    save_all(store, snapshot(1))
    assert (step_folder(folder, 1) / "subword.model").read_bytes() == piece_model


def test_state_json_is_plain_to_read(build_store: BuildStore, folder: Path) -> None:
    save_all(build_store(), snapshot(3))
    held = json.loads((step_folder(folder, 3) / "state.json").read_text())
    assert held == {"step": 3, "cursor": {"epoch": 0, "update": 3}}


def test_what_lies_beside_the_target_of_a_link_is_not_cleared(tmp_path: Path) -> None:
    checkpoints = tmp_path / "run/checkpoints"
    checkpoints.mkdir(parents=True)
    for name in ("project", "project.old", "project.partial"):
        (tmp_path / name).mkdir()
    (checkpoints / "step-00000001").symlink_to(tmp_path / "project")
    (checkpoints / "step-00000001.lock").touch()
    clear_leftovers(checkpoints)
    assert {path.name for path in tmp_path.iterdir()} == {"run", "project", "project.old", "project.partial"}
