"""Where two recipes differ, and which differences a resumed run may have."""

from tandem.config.document import dotted
from tandem.config.load import leaves
from tandem.config.recipe import Recipe

__all__ = ["differences", "may_change_on_resume"]

# What says when to stop, look or save, who does which part, how ranks exchange, and where things lie; all else is
# what the run has learned from or with.
_FREE = (
    "train.max_",
    "train.patience",
    "evaluate.",
    "checkpoint.",
    "exchange.",
    "telemetry.",
    "batch.shares",
    "data.folder",
)


def differences(a: Recipe, b: Recipe) -> list[str]:
    """Return the dotted keys whose values differ, in the order of a recipe."""
    of_a, of_b = ({dotted(loc): value for loc, value in leaves(recipe)} for recipe in (a, b))
    return [key for key in {**of_a, **of_b} if of_a.get(key) != of_b.get(key)]


def may_change_on_resume(key: str) -> bool:
    """Tell whether a run may go on with another value of this dotted key."""
    return key.startswith(_FREE)
