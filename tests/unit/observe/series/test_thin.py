"""Thinned curves keep their length, their means and their extremes."""

import numpy as np

from tandem.observe.series.thin import envelope, thin


def test_few_points_stay_as_they_are() -> None:
    x, y = np.arange(5.0), np.arange(5.0)
    assert [each.tolist() for each in thin(x, y, 5)] == [x.tolist()] * 2
    assert [each.tolist() for each in envelope(x, y, 5)] == [x.tolist()] * 3


def test_many_points_become_means_of_neighbours() -> None:
    x, y = thin(np.arange(10.0), np.arange(10.0) ** 2, 5)
    assert x.tolist() == [0.5, 2.5, 4.5, 6.5, 8.5]
    assert y.tolist() == [0.5, 6.5, 20.5, 42.5, 72.5]


def test_nan_counts_only_where_there_is_nothing_else() -> None:
    y = np.array([1.0, np.nan, np.nan, np.nan, 4.0, 6.0])
    _, means = thin(np.arange(6.0), y, 3)
    np.testing.assert_array_equal(means, [1.0, np.nan, 5.0])
    _, low, high = envelope(np.arange(6.0), y, 3)
    np.testing.assert_array_equal(low, [1.0, np.nan, 4.0])
    np.testing.assert_array_equal(high, [1.0, np.nan, 6.0])


def test_the_envelope_keeps_a_single_spike() -> None:
    y = np.zeros(10_000, np.float32)
    y[1_234] = 7.0
    _, low, high = envelope(np.arange(10_000.0), y, 100)
    assert (len(high), high.max(), low.max()) == (100, 7.0, 0.0)
