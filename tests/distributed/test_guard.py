"""Ranks of one host that another user of it tries to get between."""

import os
from pathlib import Path

import pytest
import torch
from tests.distributed.ranks import run_ranks
from tests.strangers import intruding

from tandem.parallel.world import World

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def sum_often(world: World) -> list[float]:
    sums = []
    for number in range(200):
        tensor = torch.full((1000,), float(world.rank + number))
        world.sum(tensor)
        sums.append(float(tensor[-1]))
    return sums


def test_another_user_neither_gets_between_the_ranks_nor_stops_them(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    with intruding(heard):
        sums = [run_ranks(sum_often, 3) for _ in range(3)]
        assert int(heard.read_text()) > 0, "nobody tried"
    assert sums == [[[3.0 * number + 3 for number in range(200)]] * 3] * 3
