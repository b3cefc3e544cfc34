"""Colours that people can tell apart, on both pages, whichever kind of colour blindness they have."""

import math
from itertools import combinations

import pytest

from tandem.observe.figures import look

NAMES = ("SOURCE", "TARGET", "GREEN", "PURPLE", "BROWN", "SKY", "MUTED")
PAGES = ("#ffffff", "#14171a")
LEAST_CONTRAST = 3.0
LEAST_DISTANCE = 14.0
"""In CIELAB, where 2.3 is just seen side by side."""

SEEN_AS = {
    "everybody": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopes": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopes": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopes": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
"""Of linear light: Machado, Oliveira and Fernandes 2009, at full severity."""

TO_XYZ = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
WHITE = (0.95047, 1.0, 1.08883)

Light = tuple[float, ...]
Matrix = tuple[tuple[float, ...], ...]


def light(colour: str) -> Light:
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    return tuple(each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in shares)


def through(matrix: Matrix, seen: Light) -> Light:
    return tuple(min(1.0, max(0.0, sum(a * b for a, b in zip(row, seen, strict=True)))) for row in matrix)


def lab(seen: Light) -> Light:
    xyz = (sum(a * b for a, b in zip(row, seen, strict=True)) for row in TO_XYZ)
    shares = (each / white for each, white in zip(xyz, WHITE, strict=True))
    x, y, z = (each ** (1 / 3) if each > 0.008856 else 7.787 * each + 16 / 116 for each in shares)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def contrast(one: str, other: str) -> float:
    dark, bright = sorted(
        sum(a * b for a, b in zip(TO_XYZ[1], light(each), strict=True)) for each in (one, other)
    )
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("name", NAMES)
def test_every_colour_stands_out_on_the_light_and_the_dark_page(name: str, page: str) -> None:
    assert contrast(getattr(look, name), page) >= LEAST_CONTRAST


@pytest.mark.parametrize("who", SEEN_AS)
def test_no_two_colours_look_alike(who: str) -> None:
    seen = {name: lab(through(SEEN_AS[who], light(getattr(look, name)))) for name in NAMES}
    near = {
        (one, other): math.dist(seen[one], seen[other])
        for one, other in combinations(NAMES, 2)
        if math.dist(seen[one], seen[other]) < LEAST_DISTANCE
    }
    assert not near
