"""Events about how an update is divided among ranks."""

from dataclasses import dataclass

from tandem.runlog.event.fact import Event

__all__ = ["SharesChanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharesChanged(Event):
    """Ranks get new shares of each update, by their measured speed; lists have an entry for each rank."""

    step: int
    """The step whose measurements led to it."""
    first_step: int
    """The first step that is dealt by these shares."""
    shares: tuple[float, ...]
    """The part of an update that each rank gets, in tokens of both sides."""
    tokens_per_s: tuple[float, ...]
    """Target tokens a second of each rank in forward and backward; nan: not measured, as after a restart."""
    fixed_s: tuple[float, ...]
    """Seconds of a step that each rank needs whatever its share: data, optimizer and other; nan: not measured."""
    window_steps: int
    """Steps that were measured; 0: the shares are those of a checkpoint."""
