"""Columns grow together at their end, and what was given out stays."""

from typing import Any

import numpy as np
import pytest

from tandem.observe.series.room import MEMORY, Disk, Room
from tandem.observe.series.table import Table


@pytest.fixture(params=["memory", "disk"])
def room(request: pytest.FixtureRequest) -> Room:
    return MEMORY if request.param == "memory" else Disk(least_bytes=1)


def _table(room: Room, **columns: Any) -> Table:
    return Table({name: np.zeros((*rows, 0), dtype) for name, (dtype, rows) in columns.items()}, room=room)


def test_what_is_appended_is_held_in_order(room: Room) -> None:
    table = _table(room, step=(np.int64, ()), loss=(np.float32, ()))
    for start in range(0, 1000, 10):
        table.append({"step": np.arange(start, start + 10), "loss": np.full(10, start)})
    assert table.held["step"].tolist() == list(range(1000))
    assert table.held["loss"].tolist() == [10 * (step // 10) for step in range(1000)]


def test_views_that_were_given_out_stay_as_they_are(room: Room) -> None:
    table = _table(room, loss=(np.float32, ()))
    table.append({"loss": np.ones(3)})
    given = table.held["loss"]
    for _ in range(100):
        table.append({"loss": np.zeros(7)})
    assert given.tolist() == [1.0, 1.0, 1.0]


def test_columns_are_moved_seldom(room: Room) -> None:
    table = _table(room, step=(np.int64, ()))
    moved = 0
    for value in range(5_000):
        before = table.held["step"]
        table.append({"step": np.array([value])})
        moved += len(before) > 0 and not np.shares_memory(before, table.held["step"])
    assert moved < 100


def test_rows_grow_together(room: Room) -> None:
    table = _table(room, on=(np.bool_, (2,)), time_ns=(np.int64, ()))
    table.append({"on": np.array([[True], [False]]), "time_ns": np.array([1])})
    table.append({"on": np.array([[False, False], [True, True]]), "time_ns": np.array([2, 3])})
    assert table.held["on"].tolist() == [[True, False, False], [False, True, True]]
    assert table.held["time_ns"].tolist() == [1, 2, 3]


def test_a_table_that_is_made_shorter_keeps_its_beginning(room: Room) -> None:
    table = _table(room, step=(np.int64, ()))
    table.append({"step": np.arange(9)})
    table.widen(4)
    table.append({"step": np.array([7])})
    assert table.held["step"].tolist() == [0, 1, 2, 3, 7]


def test_a_table_without_rows_takes_columns(room: Room) -> None:
    table = _table(room, gpu=(np.float32, (0,)), time_ns=(np.int64, ()))
    table.append({"gpu": np.zeros((0, 2)), "time_ns": np.array([1, 2])})
    assert table.held["gpu"].shape == (0, 2)
