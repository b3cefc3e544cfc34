"""What is left over between steps, and the codec that rounds to bfloat16."""

import torch

from tandem.parallel.encoding import Bfloat16Codec
from tandem.parallel.residual import Residual

CPU = torch.device("cpu")


def test_only_a_good_step_changes_what_is_left_over() -> None:
    residual = Residual(3, CPU)
    residual.pending.fill_(1.0)
    residual.commit(torch.tensor(1.0))
    assert residual.current.tolist() == [0.0] * 3
    residual.pending.fill_(2.0)
    residual.commit(torch.tensor(0.0))
    assert residual.current.tolist() == [2.0] * 3


def test_what_bfloat16_loses_is_in_the_remainder() -> None:
    values, owed = torch.randn(256), 1e-3 * torch.randn(256)
    codec, scale = Bfloat16Codec(), 8.0
    packed, remainder = torch.empty(codec.packed_bytes(256), dtype=torch.uint8), torch.empty(256)
    codec.encode(scale * values, values, packed, remainder, residual=owed, unscale=torch.tensor(1 / scale))
    decoded = torch.ones(256)
    codec.decode(packed, values, decoded)
    assert torch.allclose(decoded + remainder, values + owed, atol=1e-7)
    assert 0 < float(remainder.abs().max()) < 0.02
    codec.decode(packed, values, decoded, add=True)
    assert torch.allclose(decoded, 2 * (values + owed - remainder))


def test_a_number_that_is_not_finite_stays_so() -> None:
    codec, values = Bfloat16Codec(), torch.full((64,), float("nan"))
    packed, remainder = torch.empty(128, dtype=torch.uint8), torch.empty(64)
    codec.encode(values, values, packed, remainder)
    codec.decode(packed, values, remainder)
    assert not remainder.isfinite().any()
