"""Batches as tensors, made in the background while the device computes."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import torch
from numpy.typing import NDArray

from tandem.data.batches.batch import Batch, PackedBatch
from tandem.data.batches.block import in_one_block
from tandem.data.batches.deal import Deal, deal
from tandem.data.batches.fill import build_batches
from tandem.data.batches.plan import Cursor, Update, UpdatePlan
from tandem.data.batches.shape import BatchShape, check_shape
from tandem.data.batches.uneven import Portions

__all__ = ["BatchStream", "UpdateBatches"]

_DEPTH = 4
"""Updates made ahead: enough for a fast GPU to go on while the plan lays out its next pool of pairs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UpdateBatches:
    """One update's share of one rank; the counts are of the whole update, over all ranks."""

    cursor: Cursor
    batches: tuple[Batch[torch.Tensor], ...]
    pairs: int
    source_tokens: int
    target_tokens: int
    own_tokens: int = 0
    """Source and target tokens of this rank's share; 0: not counted."""


class BatchStream:
    """The updates of a plan from a cursor on, without end; `close` it, or use it in a `with`."""

    def __init__(
        self,
        plan: UpdatePlan,
        *,
        start: Cursor,
        shape: BatchShape,
        rank: int = 0,
        ranks: int = 1,
        device: str = "cpu",
        depth: int = _DEPTH,
        steps_done: int = 0,
        portions: Portions | None = None,
    ) -> None:
        """Steps are counted on from `steps_done`; without portions all ranks get equal shares in all of them."""
        check_shape(shape, plan.shards)
        self._plan = plan
        self._shape = shape
        self._rank, self._ranks = rank, ranks
        self._device = _name_device(torch.device(device))
        self._portions = portions
        self._source = self._read(start, steps_done)
        # One thread runs one generator: order and errors come through the futures as they are.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="batches")
        self._ahead: deque[Future[UpdateBatches]] = deque()
        for _ in range(depth):
            self._ask()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> UpdateBatches:
        if not self._ahead:
            raise StopIteration
        try:
            update = self._ahead.popleft().result()
        except BaseException:
            self.close()
            raise
        self._ask()
        return update

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the thread and wait for it; may be called again."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._ahead.clear()

    def _ask(self) -> None:
        self._ahead.append(self._thread.submit(next, self._source))

    def _read(self, cursor: Cursor, step: int) -> Iterator[UpdateBatches]:
        # Pinning in a new thread would otherwise open a context on GPU 0 for every rank of the host.
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)
        while True:
            step += 1
            yield self._build(cursor, step)
            cursor = self._plan.next(cursor)

    def _build(self, cursor: Cursor, step: int) -> UpdateBatches:
        update = self._plan.update(cursor)
        dealt, rank, shape = self._deal(update, step)
        batches = build_batches(self._plan.shards, dealt, rank=rank, shape=shape)
        return UpdateBatches(
            cursor=cursor,
            batches=tuple(self._to_tensors(batch) for batch in batches),
            pairs=len(update.pairs),
            source_tokens=int(update.source_tokens.sum()),
            target_tokens=int(update.target_tokens.sum()),
            own_tokens=_count_tokens(dealt, rank),
        )

    def _deal(self, update: Update, step: int) -> tuple[Deal, int, BatchShape]:
        """Return the deal that this rank takes its batches from, its number there, and their shape."""
        part = None if self._portions is None else self._portions.maybe_take(update, step=step)
        if part is None:
            return deal(update, self._ranks), self._rank, self._shape
        return part.dealt, 0, part.shape

    def _to_tensors(self, batch: Batch[NDArray[Any]]) -> Batch[torch.Tensor]:
        if self._device.type != "cuda":
            return batch.map(torch.from_numpy)
        if isinstance(batch, PackedBatch):
            return in_one_block(batch, pinned=True)
        return batch.map(lambda array: torch.from_numpy(array).pin_memory())


def _count_tokens(dealt: Deal, rank: int) -> int:
    places = dealt.rank(rank)
    return int(dealt.update.source_tokens[places].sum() + dealt.update.target_tokens[places].sum())


def _name_device(device: torch.device) -> torch.device:
    """Give a bare "cuda" the number it has here, because the current device is another one in each thread."""
    bare = device.type == "cuda" and device.index is None
    return torch.device("cuda", torch.cuda.current_device()) if bare else device
