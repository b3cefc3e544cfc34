"""Packed attention against one softmax a sentence, in double precision."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

from tandem.data.batches.tiles import build_tiles, order_pairs
from tandem.kernels.attention import Side, attention_backward, attention_forward
from tandem.kernels.random import threshold_of

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# Triton's interpreter multiplies bfloat16 wrongly; on a GPU the kernels are made for half precision.
DTYPES = [torch.float16, torch.bfloat16] if DEVICE == "cuda" else [torch.float32, torch.float16]
TOLERANCES = {torch.float32: 5e-5, torch.float16: 1e-2, torch.bfloat16: 8e-2}

RANDOM = np.random.default_rng().integers(1, 40, (2, 5)).tolist()
ROWS: dict[str, tuple[list[int], list[int], int, int]] = {
    "random lengths": (RANDOM[0], RANDOM[1], 7, 0),
    "pairs that fill tiles to the edge": ([64, 32, 30, 2], [64, 30, 32, 2], 0, 0),
    "long sentences": ([65, 128, 3], [70, 20, 130], 3, 70),
    "pairs about as long as two tiles": ([127, 129, 128], [128, 65, 1], 0, 0),
    "only one side long": ([66, 5], [64, 8], 0, 1),
    "more tiles than programs": ([33] * 6, [33] * 6, 0, 0),
    "short sources of long targets": ([2, 3], [300, 4], 0, 2),
    "nothing but padding": ([], [], 70, 5),
    "padding on the target's side only": ([9], [4], 0, 66),
}
KINDS = ["source", "causal", "across"]
# So many keys are seen at once where dropout is made visible.
WIDE = 128


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """One attention: tensors as views of projections, and what the reference must know."""

    query: Tensor
    key: Tensor
    value: Tensor
    queries: Side
    keys: Side
    causal: bool

    def forward(
        self, *, share: float = 0.0, seed: Tensor | None = None, site: int = 3
    ) -> tuple[Tensor, Tensor]:
        return attention_forward(
            self.query,
            self.key,
            self.value,
            queries=self.queries,
            keys=self.keys,
            causal=self.causal,
            share=share,
            seed=seed,
            site=site,
        )

    def backward(
        self, grad: Tensor, *, share: float = 0.0, seed: Tensor | None = None, site: int = 3
    ) -> tuple[Tensor, Tensor, Tensor]:
        out, log_sums = self.forward(share=share, seed=seed, site=site)
        # As wide as one projection of all three, so that the gradients are strided too.
        places = max(len(self.query), len(self.key))
        poisoned = torch.full(
            (places, 3, *self.query.shape[1:]), float("nan"), dtype=grad.dtype, device=DEVICE
        )
        grads = poisoned[: len(self.query), 0], poisoned[: len(self.key), 1], poisoned[: len(self.key), 2]
        attention_backward(
            grad,
            query=self.query,
            key=self.key,
            value=self.value,
            out=out,
            log_sums=log_sums,
            queries=self.queries,
            keys=self.keys,
            causal=self.causal,
            share=share,
            seed=seed,
            site=site,
            grad_query=grads[0],
            grad_key=grads[1],
            grad_value=grads[2],
        )
        return grads

    def mask(self) -> Tensor:
        """[N, C] who may look at whom."""
        queries, keys = self.queries.sentences.long(), self.keys.sentences.long()
        mask = queries[:, None] == keys
        return mask.tril() if self.causal else mask

    def expected(self, factors: Tensor | float = 1.0) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
        """The output in double precision and the tensors that it was made of; factors multiply the chances."""
        query, key, value = (
            tensor.detach().double().requires_grad_() for tensor in (self.query, self.key, self.value)
        )
        scores = torch.einsum("nhk,chk->hnc", query, key) * query.shape[-1] ** -0.5
        chances = scores.masked_fill(~self.mask(), float("-inf")).softmax(-1)
        chances = torch.where(self.mask(), chances, 0.0) * factors
        return torch.einsum("hnc,chk->nhk", chances, value), (query, key, value)


def build(
    lengths: tuple[list[int], list[int], int, int],
    kind: str,
    *,
    dtype: torch.dtype = DTYPES[0],
    heads: int = 2,
    width: int = 32,
) -> Problem:
    source, target = np.array(lengths[0], np.int64), np.array(lengths[1], np.int64)
    order = order_pairs(source, target)
    places = int(source.sum()) + lengths[2], int(target.sum()) + lengths[3]
    tiles = build_tiles(source[order], target[order], source_places=places[0], target_places=places[1])
    tables = (
        (tiles.source_tiles, tiles.tile_counts[0], tiles.source_sentences),
        (tiles.target_tiles, tiles.tile_counts[1], tiles.target_sentences),
    )
    first, second = (
        Side(tiles=side[0], counts=side[1], sentences=side[2])
        for side in ([torch.from_numpy(table).to(DEVICE) for table in tables_] for tables_ in tables)
    )
    source_mixed, target_mixed = (
        torch.randn(count, 3, heads, width, device=DEVICE).to(dtype) for count in places
    )
    queries, keys = {"source": (first, first), "causal": (second, second), "across": (second, first)}[kind]
    asked, seen = {
        "source": (source_mixed, source_mixed),
        "causal": (target_mixed, target_mixed),
        "across": (target_mixed, source_mixed),
    }[kind]
    return Problem(
        query=asked[:, 0],
        key=seen[:, 1],
        value=seen[:, 2],
        queries=queries,
        keys=keys,
        causal=kind == "causal",
    )


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """New tensors hold NaN until they are written."""
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def assert_close(given: Tensor, expected: Tensor) -> None:
    assert given.isfinite().all()
    wanted = expected.detach()
    error = float((given.double() - wanted).abs().max())
    assert error <= TOLERANCES[given.dtype] * max(1.0, float(wanted.abs().max()))


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("kind", KINDS)
def test_each_query_finds_what_its_own_sentence_holds(name: str, kind: str) -> None:
    problem = build(ROWS[name], kind)
    expected, _ = problem.expected()
    with poisoned_memory():
        out, log_sums = problem.forward()
    assert_close(out, torch.nan_to_num(expected))
    assert out.is_contiguous()
    assert log_sums.isfinite().all()


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_the_reference(name: str, kind: str) -> None:
    problem = build(ROWS[name], kind)
    expected, inputs = problem.expected()
    grad = torch.randn(expected.shape, device=DEVICE).to(DTYPES[0])
    wanted = torch.autograd.grad((expected.nan_to_num() * grad).sum(), inputs)
    for given, gradient in zip(problem.backward(grad), wanted, strict=True):
        assert_close(given, gradient.nan_to_num())


@pytest.mark.parametrize("name", ["long sentences", "pairs about as long as two tiles"])
@pytest.mark.parametrize("kind", KINDS)
def test_programs_that_may_hold_little_find_the_same(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem.kernels.attention._is_roomy", lambda _: False)
    problem = build(ROWS[name], kind)
    expected, inputs = problem.expected()
    grad = torch.randn(expected.shape, device=DEVICE).to(DTYPES[0])
    wanted = torch.autograd.grad((expected.nan_to_num() * grad).sum(), inputs)
    assert_close(problem.forward()[0], expected.nan_to_num())
    for given, gradient in zip(problem.backward(grad), wanted, strict=True):
        assert_close(given, gradient.nan_to_num())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [32, 64, 128])
def test_every_precision_and_width_of_heads_agrees(dtype: torch.dtype, width: int) -> None:
    problem = build(([40, 20, 67], [30, 31, 9], 2, 5), "across", dtype=dtype, heads=1, width=width)
    expected, inputs = problem.expected()
    grad = torch.randn(expected.shape, device=DEVICE).to(dtype)
    wanted = torch.autograd.grad((expected.nan_to_num() * grad).sum(), inputs)
    assert_close(problem.forward()[0], expected.nan_to_num())
    for given, gradient in zip(problem.backward(grad), wanted, strict=True):
        assert given.dtype == dtype
        assert_close(given, gradient.nan_to_num())


@pytest.mark.parametrize("heads", [1, 3, 8])
def test_any_number_of_heads_is_walked(heads: int) -> None:
    problem = build(([40, 20, 67], [30, 31, 9], 2, 5), "across", heads=heads)
    expected, inputs = problem.expected()
    grad = torch.randn(expected.shape, device=DEVICE).to(DTYPES[0])
    wanted = torch.autograd.grad((expected.nan_to_num() * grad).sum(), inputs)
    assert_close(problem.forward()[0], expected.nan_to_num())
    for given, gradient in zip(problem.backward(grad), wanted, strict=True):
        assert_close(given, gradient.nan_to_num())


def dropout_factors(problem: Problem, *, share: float, seed: Tensor) -> Tensor:
    """[H, N, C] what each chance was multiplied with, seen by even attention over values that are unit vectors."""
    width = problem.query.shape[-1]
    factors = []
    for start in range(0, len(problem.key), width):
        marks = torch.zeros_like(problem.value)
        stop = min(start + width, len(problem.key))
        marks[start:stop, :, : stop - start] = torch.eye(stop - start, device=DEVICE)[:, None]
        zero = torch.zeros_like(problem.query)
        marked = Problem(
            query=zero,
            key=torch.zeros_like(problem.key),
            value=marks,
            queries=problem.queries,
            keys=problem.keys,
            causal=problem.causal,
        )
        dropped, whole = (marked.forward(share=each, seed=seed)[0] for each in (share, 0.0))
        factors.append(torch.where(whole > 0, dropped / whole, 0.0)[..., : stop - start])
    return torch.cat(factors, -1).transpose(0, 1).double()


@pytest.mark.parametrize("kind", KINDS)
def test_backward_drops_what_forward_dropped(kind: str) -> None:
    problem = build(([20, 30, 66, 130], [25, 10, 12, 70], 3, 1), kind, width=WIDE)
    seed = torch.randint(-(2**31), 2**31 - 1, (2,), dtype=torch.int32, device=DEVICE)
    factors = dropout_factors(problem, share=0.3, seed=seed)
    expected, inputs = problem.expected((factors > 0) / 0.7)
    assert_close(problem.forward(share=0.3, seed=seed)[0], expected.nan_to_num())
    grad = torch.randn(expected.shape, device=DEVICE).to(DTYPES[0])
    wanted = torch.autograd.grad((expected.nan_to_num() * grad).sum(), inputs)
    for given, gradient in zip(problem.backward(grad, share=0.3, seed=seed), wanted, strict=True):
        assert_close(given, gradient.nan_to_num())


def test_the_share_is_dropped_and_the_rest_makes_up_for_it() -> None:
    problem = build(([64, 64, 64], [64, 64, 64], 0, 0), "across", width=WIDE)
    factors = dropout_factors(
        problem, share=0.25, seed=torch.tensor([5, 6], dtype=torch.int32, device=DEVICE)
    )
    seen = factors[:, problem.mask()]
    assert set(seen.mul(3).round().flatten().tolist()) == {0.0, 4.0}
    # 24,576 numbers: four standard deviations.
    assert float((seen == 0).double().mean()) == pytest.approx(0.25, abs=0.011)
    assert threshold_of(0.25) == 2**30


def test_heads_seeds_and_sites_drop_different_elements() -> None:
    problem = build(([64], [64], 0, 0), "across")

    def dropped(first: int, site: int) -> Tensor:
        seed = torch.tensor([first, 6], dtype=torch.int32, device=DEVICE)
        out, _ = problem.forward(share=0.5, seed=seed, site=site)
        return out

    assert torch.equal(dropped(1, 3), dropped(1, 3))
    assert not torch.equal(dropped(1, 3), dropped(2, 3))
    assert not torch.equal(dropped(1, 3), dropped(1, 4))
    factors = dropout_factors(problem, share=0.5, seed=torch.tensor([1, 6], dtype=torch.int32, device=DEVICE))
    assert not torch.equal(factors[0], factors[1])


def test_the_same_inputs_give_the_same_bits() -> None:
    problem = build(([70, 20, 3], [30, 70, 9], 5, 0), "across", dtype=torch.float16)
    grad = torch.randn(problem.query.shape, device=DEVICE).half()
    first, second = (problem.backward(grad) for _ in range(2))
    assert all(torch.equal(*pair) for pair in zip(first, second, strict=True))
    assert torch.equal(problem.forward()[0], problem.forward()[0])


def test_heads_that_do_not_lie_side_by_side_are_refused() -> None:
    problem = build(([4], [4], 0, 0), "source")
    turned = problem.query.transpose(0, 1).contiguous().transpose(0, 1)
    with pytest.raises(ValueError, match="heads must lie side by side"):
        attention_forward(
            turned,
            problem.key,
            problem.value,
            queries=problem.queries,
            keys=problem.keys,
            causal=False,
            share=0.0,
            seed=None,
            site=0,
        )
