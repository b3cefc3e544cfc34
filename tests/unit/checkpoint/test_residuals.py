"""Residuals on a disk: each owner's own, whole or not there, gone with the checkpoint of their step."""

from pathlib import Path

import pytest
import torch

from tandem.checkpoint.layout import remove_stale_residuals, step_folder
from tandem.checkpoint.residuals import Owner, ResidualStore
from tandem.errors import TandemError
from tandem.runlog.event import CheckpointFailed, Event
from tandem.runlog.writer import NullLog

FIRST, SECOND = (Owner(host=host, hosts=2, share=0, shares=1) for host in range(2))
FACTS = {"host": "alpha", "layout": "abc"}


def build_store(run: Path, owner: Owner | None = FIRST, *, layout: str = "abc") -> ResidualStore:
    return ResidualStore(run, owner=owner, facts={**FACTS, "layout": layout}, log=NullLog())


def save(store: ResidualStore, run: Path, *steps: int) -> None:
    for step in steps:
        step_folder(run / "checkpoints", step).mkdir(parents=True, exist_ok=True)
        store.save(step, {"share": torch.full((64,), float(step))})
    assert store.wait() == ""


def test_what_was_saved_is_loaded_by_its_owner_s_name(tmp_path: Path) -> None:
    store = build_store(tmp_path)
    values = torch.randn(128)
    store.save(20, {"share": values, "part": values[:64]})
    values.zero_()
    assert store.wait() == ""
    assert store.owners() == {20: [FIRST]}
    assert store.maybe_host(20, FIRST) == "alpha"
    assert store.maybe_host(20, SECOND) is None
    held = store.load(20, FIRST)
    assert {name: len(tensor) for name, tensor in held.items()} == {"share": 128, "part": 64}
    assert float(held["share"].abs().sum()) > 0
    store.close()


def test_a_rank_that_owns_nothing_saves_nothing(tmp_path: Path) -> None:
    store = build_store(tmp_path, None)
    store.save(20, {})
    store.close()
    assert store.owners() == {}


@pytest.mark.parametrize("harm", ["a byte", "the manifest", "the file", "the layout"])
def test_residuals_that_are_not_whole_or_do_not_fit_are_refused(tmp_path: Path, harm: str) -> None:
    store = build_store(tmp_path)
    save(store, tmp_path, 20)
    folder = tmp_path / "residuals" / "step-00000020" / FIRST.name
    file = folder / "residuals.safetensors"
    if harm == "a byte":
        file.write_bytes(file.read_bytes()[:-1] + b"\x07")
    elif harm == "the manifest":
        (folder / "manifest.json").unlink()
    elif harm == "the file":
        file.unlink()
    with pytest.raises(TandemError):
        build_store(tmp_path, layout="abd" if harm == "the layout" else "abc").load(20, FIRST)


def test_residuals_go_when_their_checkpoint_has_gone_but_the_last_two_stay(tmp_path: Path) -> None:
    store = build_store(tmp_path)
    save(store, tmp_path, 10, 20)
    step_folder(tmp_path / "checkpoints", 10).rmdir()
    save(store, tmp_path, 30, 40)
    assert sorted(store.owners()) == [20, 30, 40]
    for step in (20, 30, 40):
        step_folder(tmp_path / "checkpoints", step).rmdir()
    store.remove_stale(40)
    assert sorted(store.owners()) == [30, 40]
    remove_stale_residuals(tmp_path / "residuals", tmp_path / "checkpoints")
    assert store.owners() == {}


def test_a_run_that_goes_back_forgets_what_was_saved_later(tmp_path: Path) -> None:
    store = build_store(tmp_path)
    save(store, tmp_path, 10, 20, 30)
    store.remove_later(20)
    assert sorted(store.owners()) == [10, 20]


def test_a_disk_that_refuses_is_logged_and_stops_nothing(tmp_path: Path) -> None:
    events: list[Event] = []

    class Log(NullLog):
        def log(self, event: Event) -> None:
            events.append(event)

    (tmp_path / "residuals").write_text("a file where the folder should be")
    store = ResidualStore(tmp_path, owner=FIRST, facts=FACTS, log=Log())
    store.save(20, {"share": torch.zeros(64)})
    assert "Cannot write" in store.wait()
    store.close()
    assert [type(event) for event in events] == [CheckpointFailed]


@pytest.mark.parametrize("name", ["host-1-of-2", "host-0-of-2-share-0-of-1.partial", "x", ""])
def test_other_names_are_no_owners(name: str) -> None:
    assert Owner.maybe_parse(name) is None
    assert Owner.maybe_parse(SECOND.name) == SECOND


@pytest.mark.parametrize(
    "place", ["residuals", "residuals/step-00000020", f"residuals/step-00000020/{FIRST.name}"]
)
def test_nothing_is_read_written_or_removed_through_a_link(tmp_path: Path, place: str) -> None:
    run, outside = tmp_path / "run", tmp_path / "outside"
    store = build_store(run)
    save(store, run, 20)
    (run / place).rename(outside)
    (run / place).symlink_to(outside)
    before = sorted(path for path in outside.rglob("*"))

    with pytest.raises(TandemError):
        store.load(20, FIRST)
    assert store.maybe_host(20, FIRST) is None
    assert FIRST not in store.owners().get(20, [])
    step_folder(run / "checkpoints", 20).rmdir()
    store.save(20, {"share": torch.zeros(64)})
    store.wait()
    store.remove_later(0)
    remove_stale_residuals(run / "residuals", run / "checkpoints")
    assert sorted(path for path in outside.rglob("*")) == before
    store.close()
