"""How ranks exchange their gradients: the face that all ways have, and the exact one."""

from typing import Literal, Protocol, TypeAlias, get_args

from torch import Tensor

from tandem.parallel.regions import BucketRegions
from tandem.parallel.world import Handle, World

__all__ = ["MODES", "BucketLayout", "ExactExchange", "Exchange", "ExchangeMode"]

ExchangeMode: TypeAlias = Literal["exact", "bf16", "packed"]
MODES: tuple[ExchangeMode, ...] = get_args(ExchangeMode)
"""The most exact one first."""

_NUMBER_BYTES = 4


class Exchange(Protocol):
    """Puts the sum over all ranks in place of the gradients, a bucket at a time.

    Every rank must start the same buckets in the same order.
    """

    @property
    def mode(self) -> ExchangeMode:
        """What becomes of the gradients on their way."""
        ...

    @property
    def sent_bytes(self) -> int:
        """Bytes that this rank gives to a step's exchange."""
        ...

    def start(self, number: int) -> Handle:
        """Begin to exchange a bucket, which must not be touched before the handle was waited for."""
        ...


class BucketLayout(Protocol):
    """The buckets as an exchange sees them."""

    @property
    def flat(self) -> Tensor:
        """All buckets, gaps and slots among them."""
        ...

    @property
    def buckets(self) -> tuple[Tensor, ...]:
        """Views into it."""
        ...

    def regions(self) -> list[BucketRegions]:
        """What of each bucket may be encoded."""
        ...


class ExactExchange:
    """Sums in fp32 over all ranks at once, by the backend's all-reduce."""

    mode: ExchangeMode = "exact"

    def __init__(self, layout: BucketLayout, world: World) -> None:
        self._buckets, self._world = layout.buckets, world
        self.sent_bytes = layout.flat.numel() * _NUMBER_BYTES if world.size > 1 else 0

    def start(self, number: int) -> Handle:
        """Begin to sum a bucket in place."""
        return self._world.start_sum(self._buckets[number], name_of(number))


def name_of(number: int) -> str:
    """What a bucket's exchange is called in the pulse."""
    return f"sum of bucket {number + 1}"
