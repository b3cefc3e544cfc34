"""Places as waves and as rotations."""

import math

import torch

from tandem.model.positions import build_positions


def test_waves_are_those_of_the_paper() -> None:
    waves = build_positions("sinusoidal", torch.arange(4), width=8, heads=1).sinusoids_XD
    assert waves is not None
    rates = [1.0, 10_000 ** (-1 / 3), 10_000 ** (-2 / 3), 1e-4]
    expected = [math.sin(3 * rate) for rate in rates] + [math.cos(3 * rate) for rate in rates]
    torch.testing.assert_close(waves[3], torch.tensor(expected))


def test_an_odd_width_has_its_waves_too() -> None:
    positions = build_positions("sinusoidal", torch.arange(4), width=7, heads=1)
    assert positions.add_to(torch.zeros(2, 4, 7)).shape == (2, 4, 7)


def test_rotations_tell_distances_and_nothing_else() -> None:
    generator = torch.Generator().manual_seed(1)
    query, key = torch.randn(2, 1, 2, 8, generator=generator)

    def likeness(query_place: int, key_place: int) -> torch.Tensor:
        turned = [
            build_positions("rotary", torch.tensor([place]), width=16, heads=2).rotate(heads)
            for place, heads in ((query_place, query), (key_place, key))
        ]
        return (turned[0] * turned[1]).sum(-1)

    torch.testing.assert_close(likeness(9, 4), likeness(105, 100), rtol=1e-4, atol=1e-4)
    assert not torch.allclose(likeness(9, 4), likeness(9, 5), atol=1e-3)


def test_rotations_keep_lengths_and_turn_nothing_at_the_start() -> None:
    heads = torch.randn(5, 2, 8, generator=torch.Generator().manual_seed(1))
    turned = build_positions("rotary", torch.arange(5), width=16, heads=2).rotate(heads)
    torch.testing.assert_close(turned.norm(dim=-1), heads.norm(dim=-1))
    torch.testing.assert_close(turned[0], heads[0])
