"""A replayed graph whose buckets are summed over ranks while it goes on: two ranks share one GPU."""

from typing import Any

import pytest
import torch
from tests.distributed.ranks import run_ranks
from tests.learning import MODEL, SPECIAL, VOCABULARY, pack
from torch import Tensor

from tandem.config import ModelSection
from tandem.data.batches.batch import PackedBatch
from tandem.data.batches.block import in_one_block
from tandem.model import build_model
from tandem.parallel.buckets import GradientBuckets
from tandem.parallel.world import World
from tandem.telemetry.clock import PhaseClock

SIZE = {"width": 256, "heads": 4, "feed_forward": 1024, "encoder_layers": 4, "decoder_layers": 4}
BUCKET_BYTES = 2**20
NEW_SHARES = range(5, 9)


def draw(seed: int, *, capacity: int = 4096) -> PackedBatch[Tensor]:
    generator = torch.Generator().manual_seed(seed)

    def sentence() -> list[int]:
        pieces = int(torch.randint(1, 80, (), generator=generator))
        return torch.randint(4, VOCABULARY, (pieces,), generator=generator).tolist()

    batch = pack([(sentence(), sentence()) for _ in range(40)], capacity=capacity)
    assert isinstance(batch, PackedBatch)
    return in_one_block(batch.map(Tensor.numpy), pinned=True)


def learn_with_graph(world: World) -> dict[str, Any]:
    from tandem.train.fused import FusedPass, GraphedPass

    # NCCL wants a GPU for each rank; gloo takes what is there.
    device = torch.device("cuda", 0)
    world.device = device  # type: ignore[misc]
    section = ModelSection(**(MODEL | SIZE))
    vocabularies = {"source_vocabulary": VOCABULARY, "target_vocabulary": VOCABULARY}
    model = build_model(section, **vocabularies, pad=SPECIAL.pad, seed=1).to(device)
    buckets = GradientBuckets(list(model.parameters()), world, slots=1, bucket_bytes=BUCKET_BYTES)
    halves: dict[Tensor, Tensor] = {each: each.detach().bfloat16() for each in model.parameters()}
    eager = FusedPass(model, halves=halves, buckets=buckets, smoothing=0.1, clock=PhaseClock(device))
    graphed = GraphedPass(eager, draw(0))
    factor = torch.ones((), device=device)
    same, replayed = [], []
    for step in range(1, 13):
        # Ranks have rows of the same size, then one has larger ones, then both go back.
        capacity = 5120 if step in NEW_SHARES and world.rank == 1 else 4096
        batch = draw(10 * step + world.rank, capacity=capacity)
        buckets.clear()
        eager(batch, seed=step, factor=factor, last=False)
        expected = buckets.gradients.clone()
        world.sum(expected)
        # As in a rehearsal: nothing is sent, and nothing stays.
        graphed(batch, seed=step, factor=factor, last=False)
        buckets.clear()
        graphed(batch, seed=step, factor=factor, last=True)
        buckets.finish()
        same.append(torch.equal(buckets.gradients, expected))
        replayed.append(graphed._can_replay(batch))
    return {"same": same, "replayed": replayed, "buckets": len(buckets), "norm": float(buckets.norm())}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_buckets_that_are_sent_during_a_replay_hold_the_sum_over_ranks() -> None:
    for rank in run_ranks(learn_with_graph, 2):
        assert rank["buckets"] > 4
        assert rank["norm"] > 0
        assert all(rank["same"])
        assert all(rank["replayed"])
