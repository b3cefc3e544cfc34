"""Rows look at their past wherever it lies in the pool, and at their source, as PyTorch's attention would."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tandem.kernels.pooled_attention import attend_pooled_past, attend_pooled_source

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# The interpreter cuts bfloat16 off instead of rounding it.
TYPES = [torch.float32, torch.float16] + ([torch.bfloat16] if DEVICE == "cuda" else [])
TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}
ROWS, HEADS, ROOM = 4, 2, 48


@pytest.fixture(autouse=True)
def poisoned() -> Iterator[None]:
    """New tensors hold NaN until they are written."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def drawn(*shape: int, dtype: torch.dtype, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE, dtype)


def one(number: int) -> Tensor:
    return torch.tensor([number], device=DEVICE)


def attended(query_HK: Tensor, keys_NHK: Tensor, values_NHK: Tensor) -> Tensor:
    """[H, K] in fp64."""
    query, keys, values = (
        each.double().transpose(0, 1)[None] for each in (query_HK[None], keys_NHK, values_NHK)
    )
    return functional.scaled_dot_product_attention(query, keys, values)[0, :, 0]


def near(left: Tensor, right: Tensor, dtype: torch.dtype) -> bool:
    return torch.allclose(left.double(), right.double(), atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("length", "width"), [(0, 16), (1, 16), (5, 12), (32, 8), (37, 16)])
def test_rows_look_at_the_past_that_their_table_names_and_at_themselves(
    dtype: torch.dtype, length: int, width: int
) -> None:
    places = ROWS * ROOM
    keys, values = (drawn(places, HEADS, width, dtype=dtype, seed=seed) for seed in (1, 2))
    free = places - ROWS - 3
    table = torch.stack(
        [torch.randperm(free, generator=torch.Generator().manual_seed(row))[:ROOM] for row in range(ROWS)]
    )
    table = table.to(DEVICE, torch.int32)
    # As a projection makes them: side by side.
    mixed = drawn(ROWS, 3, HEADS, width, dtype=dtype, seed=3)
    query, key, value = mixed.unbind(1)
    before_keys, before_values = keys.clone(), values.clone()
    found = attend_pooled_past(
        query,
        key,
        value,
        keys_CHK=keys,
        values_CHK=values,
        table_RT=table,
        length_1=one(length),
        free_1=one(free),
    )
    for row in range(ROWS):
        past = table[row, :length].long()
        own_keys, own_values = (
            torch.cat((pool[past], own[row][None]))
            for pool, own in ((before_keys, key), (before_values, value))
        )
        assert near(found[row], attended(query[row], own_keys, own_values), dtype)
    # What is new lies behind, and nothing else was touched.
    before_keys[free : free + ROWS], before_values[free : free + ROWS] = key, value
    assert torch.equal(keys, before_keys)
    assert torch.equal(values, before_values)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("beam", "width"), [(1, 16), (2, 12)])
def test_rows_of_a_sentence_look_at_its_source(dtype: torch.dtype, beam: int, width: int) -> None:
    starts, lengths = [40, 0, 3], [35, 3, 32]
    keys, values = (drawn(80, HEADS, width, dtype=dtype, seed=seed) for seed in (1, 2))
    query = drawn(3 * beam, HEADS, width, dtype=dtype, seed=3)
    found = attend_pooled_source(
        query,
        keys_CHK=keys,
        values_CHK=values,
        starts_G=torch.tensor(starts, dtype=torch.int32, device=DEVICE),
        lengths_G=torch.tensor(lengths, dtype=torch.int32, device=DEVICE),
        beam=beam,
    )
    for row, query_HK in enumerate(query):
        start, length = starts[row // beam], lengths[row // beam]
        source = slice(start, start + length)
        assert near(found[row], attended(query_HK, keys[source], values[source]), dtype)


def test_scores_far_apart_overflow_nothing() -> None:
    keys = torch.zeros(40, 1, 4, device=DEVICE)
    keys[0], keys[35] = 80.0, -80.0
    values = torch.arange(40.0, device=DEVICE)[:, None, None].expand(40, 1, 4).contiguous()
    found = attend_pooled_source(
        torch.full((1, 1, 4), 80.0, device=DEVICE),
        keys_CHK=keys,
        values_CHK=values,
        starts_G=torch.zeros(1, dtype=torch.int32, device=DEVICE),
        lengths_G=torch.full((1,), 40, dtype=torch.int32, device=DEVICE),
        beam=1,
    )
    assert torch.equal(found, torch.zeros_like(found))
