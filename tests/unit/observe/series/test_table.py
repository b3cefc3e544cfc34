"""Columns grow at their end, and what was given out stays."""

import numpy as np

from tandem.observe.series.growing import Growing


def test_what_is_appended_is_held_in_order() -> None:
    column = Growing(np.int64)
    for start in range(0, 1000, 10):
        column.append(np.arange(start, start + 10))
    assert column.held.tolist() == list(range(1000))


def test_views_that_were_given_out_stay_as_they_are() -> None:
    column = Growing(np.float32)
    column.append(np.ones(3))
    given = column.held
    for _ in range(100):
        column.append(np.zeros(7))
    assert given.tolist() == [1.0, 1.0, 1.0]


def test_a_column_is_moved_seldom() -> None:
    column = Growing(np.int64)
    moved = 0
    for value in range(5_000):
        before = column.held
        column.append(np.array([value]))
        moved += len(before) > 0 and not np.shares_memory(before, column.held)
    assert moved < 100


def test_rows_grow_together() -> None:
    column = Growing(np.bool_, rows=(2,))
    column.append(np.array([[True], [False]]))
    column.append(np.array([[False, False], [True, True]]))
    assert column.held.tolist() == [[True, False, False], [False, True, True]]


def test_a_column_that_is_made_shorter_keeps_its_beginning() -> None:
    column = Growing(np.int64)
    column.append(np.arange(9))
    column.widen(4)
    column.append(np.array([7]))
    assert column.held.tolist() == [0, 1, 2, 3, 7]
