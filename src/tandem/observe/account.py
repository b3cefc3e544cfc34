"""Where every second of a run went, training included: the parts add up to the wall time."""

from dataclasses import dataclass

from tandem.observe.exchange import Exposure
from tandem.observe.spent import Spent

__all__ = ["Account", "Item", "settle"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One part of a run's wall time."""

    name: str
    seconds: float
    definition: str
    is_training: bool = False
    """Whether it is a part of the steps' time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """All parts of a run's wall time."""

    items: tuple[Item, ...]

    @property
    def whole_s(self) -> float:
        """Sum of all parts: the wall time."""
        return sum(item.seconds for item in self.items)

    @property
    def training_s(self) -> float:
        """Sum of the parts of the steps."""
        return sum(item.seconds for item in self.items if item.is_training)


_OUTSIDE = (
    ("evaluation_s", "evaluation", "Durations of evaluations, from their start to their end."),
    ("checkpoint_s", "waiting for checkpoints", "Time that training stood still for them; writing goes on beside it."),
    ("preparation_s", "data preparation", "Durations of the stages that did something."),
    ("start_s", "start-up and compiling", "From the first record to the first step, and what first steps take more."),
    ("lost_s", "lost to restarts", "Steps that were done again, and the time from a loss to the next start."),
    ("stopped_s", "stopped", "Between an end and a later resume: nothing ran."),
    ("rest_s", "not explained", "Wall time less all other parts."),
)  # fmt: skip
_UNKNOWN = "Durations of the steps that stand, less what first steps take more; their phases were not logged."
_MEAN = "training time × its share of the mean step"


def settle(spent: Spent, exposure: Exposure | None) -> Account:
    """Split the wall time, and within it the time of steps by the phases that were logged."""
    outside = tuple(
        Item(name=name, seconds=getattr(spent, field), definition=definition)
        for field, name, definition in _OUTSIDE
    )
    if exposure is None or not exposure.step_s:
        training = Item(name="training", seconds=spent.training_s, definition=_UNKNOWN, is_training=True)
        return Account(items=(training, *outside))
    split = exposure.split
    # Steps that no rank logged are known by their time alone.
    known_s = spent.training_s * (1.0 - split.unknown_s / (split.whole_s - split.unlogged_s))
    training_items = [
        Item(
            name=f"training: {name}",
            seconds=known_s * exposure.share(seconds),
            definition=f"{meaning}: {_MEAN}",
            is_training=True,
        )
        for name, seconds, meaning in _within(exposure)
    ]
    if split.unknown_s > 0:
        training_items.append(
            Item(
                name="training: steps without phases",
                seconds=spent.training_s - known_s,
                definition="Steps of which only the duration was logged.",
                is_training=True,
            )
        )
    return Account(items=(*training_items, *outside))


def _within(exposure: Exposure) -> tuple[tuple[str, float, str], ...]:
    return (
        ("computing", exposure.compute_s, "Forward and backward, less what the exchange slows them"),
        ("exchange", exposure.network_s + exposure.inner_s, "The wait for it, and what it slows computing by"),
        ("slowest rank", exposure.straggler_s, "What ranks wait for one another"),
        ("data", exposure.data_s, "No batch was there"),
        ("standstill", exposure.stalled_s, "Forward and backward beyond twice a rank's usual time"),
        ("optimiser", exposure.optimizer_s, "New weights"),
        ("other", exposure.other_s, "What has no name in a step"),
    )  # fmt: skip
