"""The exchange of gradients as a part of the run's state: residuals are saved with checkpoints, and found again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor

from tandem.artefact import fingerprint
from tandem.checkpoint.layout import KEPT_STEPS
from tandem.checkpoint.residuals import Owner, ResidualStore
from tandem.checkpoint.restore import Restored
from tandem.checkpoint.store import CheckpointStore
from tandem.config import Recipe
from tandem.errors import TandemError
from tandem.parallel.coded_exchange import CodedExchange
from tandem.parallel.shares import ShareLayout, add_owned, take_owned
from tandem.parallel.topology import Topology
from tandem.parallel.world import World
from tandem.runlog.event import ResidualsRestored
from tandem.runlog.writer import NullLog, RunLog
from tandem.train.exchanger import EXCHANGE, Exchanger, exchange_facts
from tandem.train.learner import Learner
from tandem.train.residual_watch import ResidualWatch
from tandem.train.seeds import derived_seed

__all__ = ["RunExchange", "open_exchange"]

_MOST_OWNERS = 65_536
"""As many as ranks can be in a log."""

_Seen: TypeAlias = Mapping[str, str]
"""By the name of an owner: the host that it was on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunExchange:
    """The exchange of a run, and where its residuals are kept."""

    exchanger: Exchanger
    store: ResidualStore
    """On this host's disk."""
    world: World
    log: RunLog
    """Of facts that are the same on every rank."""
    residual_watch: ResidualWatch

    @property
    def least_kept(self) -> int:
        """How many checkpoints must stay: of one alone, a kill could leave no step with residuals on all disks."""
        return 1 if self.exchanger.coded is None else KEPT_STEPS

    def has_all_residuals(self) -> Callable[[Restored], bool]:
        """Whether a checkpoint can be resumed to the bit, if that is possible on these hosts; all ranks ask together.

        For that all residuals that belong to it must be on some disk.
        """
        mine = {str(step): [owner.name for owner in owners] for step, owners in self.store.owners().items()}
        held = cast(list[dict[str, list[str]]], self.world.gather(mine))
        topology = self.exchanger.topology
        layout = (len(topology.hosts), topology.shares)

        def is_whole(restored: Restored) -> bool:
            expected = _expected(restored.state)
            if (
                self.exchanger.coded is None
                or not expected
                or layout != (expected[0].hosts, expected[0].shares)
            ):
                return True
            names = {name for each in held for name in each.get(str(restored.step), ())}
            return all(owner.name in names for owner in expected)

        return is_whole

    def resume(self, step: int, facts: Mapping[str, Any]) -> None:
        """Go on from a checkpoint, in its mode and with its residuals; other hosts get parts of the residuals' sum."""
        self.exchanger.resume(facts)
        self.store.remove_later(step)
        expected = _expected(facts)
        if not expected:
            return
        seen = cast(list[_Seen], self.world.gather(_look(self.store, step, expected)))
        coded, found = self.exchanger.coded, 0
        is_used = self.exchanger.is_encoded(step + 1)
        is_same = _is_same(self.exchanger.topology, expected, seen)
        if coded is not None and is_used and is_same:
            found = _restore_own(coded, self.store, step, self.world)
        elif coded is not None and is_used:
            found = _share_out(coded, self.store, step=step, expected=expected, seen=seen, world=self.world)
        self.log.log(
            ResidualsRestored(
                step=step,
                expected=len(expected),
                found=found,
                is_same_layout=is_same and found > 0,
                is_used=is_used,
            )
        )

    def prepare_save(self, checkpoints: CheckpointStore | None) -> None:
        """Wait until all ranks have all of the last save on their disks.

        Only then may the one before it go: whenever a run is killed, there is a step of which nothing is missing.
        """
        if self.exchanger.coded is None:
            return
        if checkpoints is not None:
            checkpoints.settle()
        self.store.wait()
        self.world.barrier()

    def save(self, step: int) -> None:
        """Save the residuals that belong to a checkpoint of this step, in the background."""
        coded = self.exchanger.coded
        if coded is not None and self.exchanger.is_encoded(step):
            self.store.save(step, {name: each.current for name, each in coded.residuals.items()})

    def finish(self, step: int) -> None:
        """Wait for the last save; a disk that could not take it has been logged."""
        self.store.wait()
        self.store.remove_stale(step)


@contextmanager
def open_exchange(
    recipe: Recipe, learner: Learner, world: World, *, run: Path, host: str, timeout_s: float, log: RunLog
) -> Iterator[RunExchange]:
    """The exchange of a run on this host; inside the block gradients can be exchanged."""
    told = log if world.rank == 0 else NullLog()
    exchanger = Exchanger(
        learner.buckets,
        world=world,
        topology=Topology.gather(world, host),
        section=recipe.exchange,
        second_moment=learner.optimizer.second_moment,
        seed=derived_seed(recipe.seed, EXCHANGE),
        timeout_s=timeout_s,
        log=told,
    )
    topology, coded = exchanger.topology, exchanger.coded
    owner, layout = None, ""
    if coded is not None:
        owner = _own(topology) if topology.owns_share else None
        layout = fingerprint([list(map(list, region.coded)) for region in coded.regions])
    facts = {"host": topology.names[topology.host], "layout": layout}
    store = ResidualStore(run, owner=owner, facts=facts, log=log)
    yield RunExchange(
        exchanger=exchanger,
        store=store,
        world=world,
        log=told,
        residual_watch=ResidualWatch(exchanger, world, told),
    )
    store.close()
    exchanger.close()


def _restore_own(coded: CodedExchange, store: ResidualStore, step: int, world: World) -> int:
    """Each owner goes on with its own; gives how many were found."""
    sizes = {name: len(residual.current) for name, residual in coded.residuals.items()}
    tensors = _maybe_load(store, step, _own(coded.topology), sizes) if coded.topology.owns_share else None
    for name, residual in coded.residuals.items():
        if tensors is not None:
            residual.load(tensors[name])
    return _count(world, tensors is not None)


def _share_out(
    coded: CodedExchange,
    store: ResidualStore,
    *,
    step: int,
    expected: Sequence[Owner],
    seen: Sequence[_Seen],
    world: World,
) -> int:
    """Sum all residuals that some rank can read, and give each host its part of the sum; gives how many there were."""
    layout, found = coded.shares, 0
    before = ShareLayout(coded.regions, hosts=expected[0].hosts, shares=expected[0].shares)
    whole = torch.zeros(layout.numbers, device=world.device)
    for owner in expected:
        readers = [rank for rank, owners in enumerate(seen) if owner.name in owners]
        if readers[:1] != [world.rank]:
            continue
        owned = before.owned(owner.share, owner.host)
        sizes = {"share": owned[-1].in_share[1]} | (
            {"part": owned[-1].in_part[1]} if before.has_parts else {}
        )
        if (tensors := _maybe_load(store, step, owner, sizes)) is not None:
            add_owned(whole, before, owned, tensors)
            found += 1
    world.sum(whole)
    if coded.topology.owns_share:
        coded.residuals["share"].load(take_owned(whole, layout, coded.owned) / layout.hosts)
    return _count(world, found)


def _count(world: World, found: int) -> int:
    total = torch.tensor([float(found)], device=world.device)
    world.sum(total)
    return round(float(total))


def _maybe_load(
    store: ResidualStore, step: int, owner: Owner, sizes: Mapping[str, int]
) -> Mapping[str, Tensor] | None:
    """An owner's residuals; None where they are not whole, or not numbers that the exchange can have left."""
    try:
        tensors = store.load(step, owner)
    except TandemError:
        return None
    fits = tensors.keys() == sizes.keys() and all(
        tensor.dtype == torch.float32 and tensor.shape == (sizes[name],) and bool(tensor.isfinite().all())
        for name, tensor in tensors.items()
    )
    return tensors if fits else None


def _look(store: ResidualStore, step: int, expected: Sequence[Owner]) -> dict[str, str]:
    """Which of the expected residuals this rank can see, and of which hosts they are."""
    there = [owner for owner in store.owners().get(step, ()) if owner in expected]
    return {owner.name: host for owner in there if (host := store.maybe_host(step, owner)) is not None}


def _is_same(topology: Topology, expected: Sequence[Owner], seen: Sequence[_Seen]) -> bool:
    """Whether hosts and shares are as they were when the residuals were saved."""
    if (expected[0].hosts, expected[0].shares) != (len(topology.hosts), topology.shares):
        return False
    by_name = {owner.name: owner for owner in expected}
    return all(topology.names[by_name[name].host] == host for owners in seen for name, host in owners.items())


def _own(topology: Topology) -> Owner:
    return Owner(host=topology.host, hosts=len(topology.hosts), share=topology.local, shares=topology.shares)


def _expected(facts: Mapping[str, Any]) -> list[Owner]:
    """Whose residuals were saved with a checkpoint; none where it says what no run can have."""
    owners = exchange_facts(facts).get("owners")
    if not isinstance(owners, list) or len(owners) != 2 or not all(type(each) is int for each in owners):
        return []
    hosts, shares = owners
    if not (hosts > 0 and shares > 0 and hosts * shares <= _MOST_OWNERS):
        return []
    return [
        Owner(host=host, hosts=hosts, share=share, shares=shares)
        for host in range(hosts)
        for share in range(shares)
    ]
