"""Which ranks of a run share a host, and which of them send a share of the gradients to other hosts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, cast

from tandem.parallel.world import World

__all__ = ["Topology"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The ranks of each host, as one of them sees them."""

    hosts: tuple[tuple[int, ...], ...]
    """Ranks of each host, in order; hosts in the order of their first ranks."""
    names: tuple[str, ...]
    """Name of each host."""
    rank: int

    @classmethod
    def build(cls, names: Sequence[str], local_ranks: Sequence[int], *, rank: int) -> Self:
        """Group ranks by host name.

        Hosts may share a name, as containers do: a second rank with the same number on its host is of another one.
        """
        members: dict[tuple[str, int], list[int]] = {}
        seen: dict[tuple[str, int], int] = {}
        for each, key in enumerate(zip(names, local_ranks, strict=True)):
            copy = seen.get(key, 0)
            seen[key] = copy + 1
            members.setdefault((key[0], copy), []).append(each)
        return cls(
            hosts=tuple(map(tuple, members.values())),
            names=tuple(f"{name}#{copy + 1}" if copy else name for name, copy in members),
            rank=rank,
        )

    @classmethod
    def gather(cls, world: World, name: str) -> Self:
        """Ask all ranks for the name of their host."""
        if world.is_one_host:
            return cls(hosts=(tuple(range(world.size)),), names=(name,), rank=world.rank)
        facts = cast(list[tuple[str, int]], world.gather([name, world.local_rank]))
        return cls.build([fact[0] for fact in facts], [fact[1] for fact in facts], rank=world.rank)

    @property
    def host(self) -> int:
        """Index of this rank's host."""
        return next(index for index, ranks in enumerate(self.hosts) if self.rank in ranks)

    @property
    def local(self) -> int:
        """Index of this rank on its host."""
        return self.hosts[self.host].index(self.rank)

    @property
    def shares(self) -> int:
        """Shares that gradients are cut into: one for each rank of the host with the fewest."""
        return min(map(len, self.hosts))

    @property
    def owns_share(self) -> bool:
        """Whether this rank sends a share of its host's gradients to the other hosts."""
        return self.local < self.shares

    @property
    def neighbours(self) -> tuple[int, ...]:
        """The other ranks of this rank's host."""
        return tuple(rank for rank in self.hosts[self.host] if rank != self.rank)

    def owner(self, host: int, share: int) -> int:
        """The rank that owns a share on a host."""
        return self.hosts[host][share]
