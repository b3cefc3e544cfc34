"""Numbers that somebody else tells of a run, an importer or a recipe: none that cannot be reckoned with."""

import math
from typing import Any

from tandem.observe.series.columns import Series
from tandem.runlog.record import MOST

__all__ = ["as_number", "fact", "fact_count", "fact_number"]


def as_number(value: object) -> float | None:
    """The value if it is a number, finite and no greater than any that a log may hold; else None."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if -MOST <= value <= MOST else None


def fact(series: Series, name: str) -> Any:
    """What an imported run says under this name; None where it says nothing."""
    return series.imported.facts.get(name) if series.imported is not None else None


def fact_number(series: Series, name: str) -> float:
    """A number of an imported run; nan where it has none of that name."""
    number = as_number(fact(series, name))
    return math.nan if number is None else number


def fact_count(series: Series, name: str) -> int:
    """A whole number of an imported run that is not negative; 0 where it has none of that name."""
    number = as_number(fact(series, name)) or 0.0
    return max(0, int(number))
