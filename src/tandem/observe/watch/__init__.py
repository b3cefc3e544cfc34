"""A run as it goes on, in the terminal."""

from tandem.observe.watch.follow import Sink, follow_run
from tandem.observe.watch.state import WatchState

__all__ = ["Sink", "WatchState", "follow_run"]
