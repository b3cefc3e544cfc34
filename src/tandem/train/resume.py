"""Where a run goes on: at the newest good checkpoint that any host has."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from tandem.artefact import JsonValue
from tandem.checkpoint.restore import Restored
from tandem.checkpoint.store import CheckpointStore, Scores, Snapshot
from tandem.data.batches.plan import Cursor
from tandem.errors import TandemError
from tandem.parallel.world import World
from tandem.train.alike import name_host
from tandem.train.learner import Learner
from tandem.train.state import TrainState

__all__ = ["Start", "find_start"]

_Told = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where the run begins, or goes on."""

    state: TrainState
    facts: Mapping[str, Any]
    """What the checkpoint says besides; empty for a new run."""
    resumed_from: str = ""
    resumed_host: str = ""
    """The host that had the checkpoint."""


def find_start(
    store: CheckpointStore | None,
    learner: Learner,
    *,
    world: World,
    hosts: Sequence[str],
    first: Cursor,
    check: Callable[[Restored], None],
    is_whole: Callable[[Restored], bool] = lambda _: True,
) -> Start:
    """Ranks with a store read their newest good checkpoint; all go on from the newest of these, or at `first`.

    `check` raises TandemError for a checkpoint of something else: that ends the run on every rank. One that `is_whole`
    does not hold for, as something that belongs to it is missing, gives way to the one before if it holds for that.
    """
    restored, told = _look(store, check, is_whole)
    held = cast(list[_Told], world.gather(told))
    source = _choose(held, hosts)
    if source is None:
        return Start(state=TrainState(cursor=first), facts={})
    chosen = held[source]
    learner.restore(restored if world.rank == source else None, world, source=source)
    if store is not None and (told.get("step"), told.get("mark")) != (chosen["step"], chosen["mark"]):
        # What the run stands on must not be on one disk alone.
        store.save(_copy(learner, chosen))
    facts = dict(chosen["state"])
    state = TrainState.from_json({name: facts.pop(name) for name in TrainState().to_json()})
    return Start(state=state, facts=facts, resumed_from=chosen["folder"], resumed_host=hosts[source])


def _look(
    store: CheckpointStore | None,
    check: Callable[[Restored], None],
    is_whole: Callable[[Restored], bool],
) -> tuple[Restored | None, dict[str, JsonValue]]:
    """The newest good checkpoint of this rank, and what to tell the others of it."""
    if store is None:
        return None, {}
    try:
        newest = store.newest()
    except TandemError as error:
        return None, {"spoilt": str(error)}
    if newest is None:
        return None, {}
    restored = _go_back(store, newest, is_whole)
    try:
        check(restored)
    except TandemError as error:
        return None, {"refused": str(error)}
    return restored, {
        "step": restored.step,
        "newest": newest.step,
        "whole": is_whole(restored),
        "mark": restored.mark,
        "folder": restored.folder.name,
        "state": restored.state,
        "scores": restored.scores.to_json(),
    }


def _go_back(store: CheckpointStore, newest: Restored, is_whole: Callable[[Restored], bool]) -> Restored:
    """The checkpoint before the newest one, where that is whole and the newest one is not.

    Not further: nothing that belongs to the one before was touched until all of it was on all disks. What is missing
    there too is gone with its disk.
    """
    if is_whole(newest):
        return newest
    with suppress(TandemError):
        earlier = store.newest(before=newest.step)
        if earlier is not None and is_whole(earlier):
            return earlier
    return newest


def _choose(held: Sequence[_Told], hosts: Sequence[str]) -> int | None:
    """The lowest rank with the newest checkpoint, or if that is not whole the one before; None where there is none."""
    _raise_first(held, "refused", hosts)
    found = [rank for rank, told in enumerate(held) if "step" in told]
    if not found:
        _raise_first(held, "spoilt", hosts)
        return None
    return max(found, key=lambda rank: _worth(held[rank], rank))


def _worth(told: _Told, rank: int) -> tuple[int, bool, int, int]:
    return told["newest"], told["whole"], told["step"], -rank


def _raise_first(held: Sequence[_Told], what: str, hosts: Sequence[str]) -> None:
    for rank, told in enumerate(held):
        if what in told:
            raise TandemError(name_host(hosts, rank, told[what]))


def _copy(learner: Learner, chosen: _Told) -> Snapshot:
    return Snapshot(
        step=chosen["step"],
        model=learner.weights(),
        optimizer=learner.rest(),
        state=chosen["state"],
        scores=Scores(**chosen["scores"]),
    )
