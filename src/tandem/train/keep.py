"""Checkpoints of a run: when one is due, and what goes into it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from torch import Tensor

from tandem.artefact import JsonValue
from tandem.checkpoint.store import CheckpointStore, Scores, Snapshot
from tandem.config import CheckpointSection
from tandem.train.asked import Asked
from tandem.train.state import TrainState

__all__ = ["Keeper"]

UNJUDGED = Scores(loss=None, bleu=None)


@dataclass(slots=True, kw_only=True)
class Keeper:
    """Saves the run; ranks other than 0 have no store, and nothing to write."""

    rules: CheckpointSection
    store: CheckpointStore | None
    weights: Callable[[], Mapping[str, Tensor]]
    """The weights that translate."""
    rest: Callable[[], Mapping[str, Tensor]]
    """Everything else that the next step needs."""
    facts: Mapping[str, JsonValue]
    """What else a resumed run must know."""
    elapsed_s: Callable[[], float]
    on_saved: Callable[[], None]
    saved_step: int = 0

    def is_due(self, state: TrainState, asked: Asked) -> bool:
        """Whether to save now; the same on every rank."""
        every = self.rules.every_steps
        return asked.save or (every is not None and state.step % every == 0)

    def save(self, state: TrainState, scores: Scores = UNJUDGED) -> None:
        """Take a checkpoint, which is written in the background."""
        self.saved_step = state.step
        if self.store is not None:
            state = replace(state, trained_s=self.elapsed_s())
            snapshot = Snapshot(
                step=state.step,
                model=self.weights(),
                optimizer=self.rest(),
                state={**state.to_json(), **self.facts},
                scores=scores,
            )
            self.store.save(snapshot)
        self.on_saved()

    def finish(self, state: TrainState) -> None:
        """Save the last step, unless that was done, and wait until it is safely there."""
        if self.saved_step != state.step:
            self.save(state)
        if self.store is not None:
            self.store.wait()
