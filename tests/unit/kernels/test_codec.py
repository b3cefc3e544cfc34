"""The kernels find the codes of the plain definition, and the same bits when they go back."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from tandem.kernels.codec import CODEC_BLOCK, decode_blocks, encode_blocks
from tandem.parallel.codec_plain import PlainCodec
from tandem.parallel.codec_tables import BLOCK, Sum, build_tables
from tandem.parallel.codec_triton import codec_constants

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
BITS = [1, 2, 4, 8]
BLOCK_COUNTS = [1, 31, 32, 70]
SCALE_STEP = 2**-7
"""From one bf16 number to the next, as a share of it, at most."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sent:
    codes: Tensor
    scales: Tensor
    remainder: Tensor


def draw(blocks: int, *, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients, residuals and second moments, of very different size from block to block."""
    generator = torch.Generator().manual_seed(blocks + seed)
    gradient, residual, root = torch.randn(3, blocks, BLOCK, generator=generator)
    size = torch.logspace(-6, 2, blocks)[:, None]
    found = [(gradient * size).flatten(), (residual * size * 0.1).flatten(), (root * size).square().flatten()]
    return found[0].to(DEVICE), found[1].to(DEVICE), found[2].to(DEVICE)


def buffers(count: int, bits: int) -> Sent:
    return Sent(
        codes=torch.zeros(count * bits // 8, dtype=torch.uint8, device=DEVICE),
        scales=torch.zeros(count // BLOCK, dtype=torch.bfloat16, device=DEVICE),
        remainder=torch.full((count,), 7.0, device=DEVICE),
    )


def send(x: Sum, second: Tensor, bits: int, *, plainly: bool) -> Sent:
    tables = build_tables(bits=bits, seed=5, device=DEVICE)
    sent = buffers(x.values.numel(), bits)
    if plainly:
        PlainCodec(tables).encode(x, second, sent.codes, sent.scales, sent.remainder)
    else:
        encode_blocks(
            x.values,
            second,
            sent.codes,
            sent.scales,
            constants=codec_constants(tables),
            residual=x.residual,
            unscale=x.unscale,
            remainder=sent.remainder,
        )
    return sent


def receive(sent: Sent, second: Tensor, bits: int, *, plainly: bool, into: Tensor | None = None) -> Tensor:
    tables = build_tables(bits=bits, seed=5, device=DEVICE)
    out = torch.zeros_like(second) if into is None else into.clone()
    if plainly:
        PlainCodec(tables).decode(sent.codes, sent.scales, second, out, add=into is not None)
    else:
        constants = codec_constants(tables)
        decode_blocks(sent.codes, sent.scales, second, out, constants=constants, add=into is not None)
    return out


def test_blocks_are_as_long_as_elsewhere() -> None:
    assert CODEC_BLOCK == BLOCK


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("blocks", BLOCK_COUNTS)
def test_codes_are_those_of_the_definition_and_scales_within_a_step_of_bf16(blocks: int, bits: int) -> None:
    gradient, _, second = draw(blocks)
    x = Sum(values=gradient, residual=None, unscale=1.0)
    ours, plain = send(x, second, bits, plainly=False), send(x, second, bits, plainly=True)
    assert torch.equal(ours.codes, plain.codes)
    torch.testing.assert_close(ours.scales, plain.scales, rtol=SCALE_STEP, atol=0)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("blocks", BLOCK_COUNTS)
def test_what_is_decoded_has_the_bits_of_the_definition(blocks: int, bits: int) -> None:
    gradient, before, second = draw(blocks)
    sent = send(Sum(values=gradient, residual=None, unscale=1.0), second, bits, plainly=True)
    found = [receive(sent, second, bits, plainly=plainly) for plainly in (False, True)]
    assert torch.equal(*found)
    added = receive(sent, second, bits, plainly=False, into=before)
    assert torch.equal(added, before + found[1])


@pytest.mark.parametrize("unscale_is_tensor", [False, True])
def test_gradients_and_residual_are_put_together_on_the_way(unscale_is_tensor: bool) -> None:
    gradient, residual, second = draw(40)
    unscale: float | Tensor = torch.tensor(0.3, device=DEVICE) if unscale_is_tensor else 0.3
    together = gradient * unscale + residual
    sent = send(Sum(values=gradient, residual=residual, unscale=unscale), second, 4, plainly=False)
    alone = send(Sum(values=together, residual=None, unscale=1.0), second, 4, plainly=False)
    for ours, expected in (
        (sent.codes, alone.codes),
        (sent.scales, alone.scales),
        (sent.remainder, alone.remainder),
    ):
        assert torch.equal(ours, expected)


def test_what_remains_is_what_the_others_lack() -> None:
    gradient, _, second = draw(40)
    sent = send(Sum(values=gradient, residual=None, unscale=1.0), second, 4, plainly=False)
    assert torch.equal(sent.remainder, gradient - receive(sent, second, 4, plainly=False))


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_makes_its_block_nan_and_no_other(bad: float) -> None:
    gradient, _, second = draw(40)
    gradient[5 * BLOCK + 3] = bad
    sent = send(Sum(values=gradient, residual=None, unscale=1.0), second, 4, plainly=False)
    found = receive(sent, second, 4, plainly=False).view(-1, BLOCK)
    is_nan = found.isnan()
    assert is_nan[5].all()
    assert not is_nan.any(1).index_fill(0, torch.tensor(5, device=DEVICE), value=False).any()


def test_zeros_are_sent_exactly_whatever_their_moments_are() -> None:
    _, _, second = draw(40)
    second[: 20 * BLOCK] = 0
    zeros = torch.zeros_like(second)
    sent = send(Sum(values=zeros, residual=None, unscale=1.0), second, 4, plainly=False)
    assert not receive(sent, second, 4, plainly=False).any()
    assert not sent.remainder.any()


def test_nothing_is_written_beyond_the_end() -> None:
    gradient, _, second = draw(33)
    tables, longer = build_tables(bits=4, seed=5, device=DEVICE), buffers(40 * BLOCK, 4)
    encode_blocks(
        gradient,
        second,
        longer.codes[: 33 * BLOCK // 2],
        longer.scales[:33],
        constants=codec_constants(tables),
        remainder=longer.remainder[: 33 * BLOCK],
    )
    assert not longer.codes[33 * BLOCK // 2 :].any()
    assert not longer.scales[33:].any()
    assert (longer.remainder[33 * BLOCK :] == 7).all()
    assert not (longer.remainder[: 33 * BLOCK] == 7).any()
