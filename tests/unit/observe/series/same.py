"""Compares series: the same numbers, whichever way they were read."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

from tandem.observe.series.columns import Series


def check_same(first: Series, second: Series) -> None:
    """Fail at the first thing that differs by more than the reading of a decimal number may."""
    _check(first, second, "series")


def _check(first: Any, second: Any, where: str) -> None:
    assert type(first) is type(second), where
    if isinstance(first, np.ndarray):
        assert (first.dtype, first.shape) == (second.dtype, second.shape), where
        rtol = {"f4": 3e-7, "f8": 1e-13}.get(first.dtype.str[1:], 0.0)
        np.testing.assert_allclose(first, second, rtol=rtol, err_msg=where)
    elif is_dataclass(first):
        for each in fields(first):
            _check(getattr(first, each.name), getattr(second, each.name), f"{where}.{each.name}")
    elif isinstance(first, Mapping):
        assert list(first) == list(second), where
        for name, value in first.items():
            _check(value, second[name], f"{where}[{name!r}]")
    elif isinstance(first, tuple):
        assert len(first) == len(second), where
        for place, (one, other) in enumerate(zip(first, second, strict=True)):
            _check(one, other, f"{where}[{place}]")
    elif isinstance(first, float):
        assert first == pytest.approx(second, rel=1e-13, nan_ok=True), where
    else:
        assert first == second, where
