"""A run as it goes on, in the terminal."""

from tandem.observe.watch.follow import Sink, can_draw, follow_run, look_at_run
from tandem.observe.watch.standing import state_of
from tandem.observe.watch.state import WatchState

__all__ = ["Sink", "WatchState", "can_draw", "follow_run", "look_at_run", "state_of"]
