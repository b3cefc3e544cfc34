"""Where a run stands: everything but tensors, and small enough to write into every checkpoint."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Self

from tandem.artefact import JsonValue
from tandem.data.batches.plan import Cursor

__all__ = ["TrainState"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainState:
    """A place in a run; the same on every rank, but for the clock."""

    step: int = 0
    tokens: int = 0
    """Target tokens of all steps, skipped ones too."""
    cursor: Cursor = field(default_factory=Cursor)
    """The update to come."""
    trained_s: float = 0.0
    """Seconds since the start, over all restarts, as rank 0 had them at the last checkpoint."""
    best_loss: float | None = None
    best_bleu: float | None = None
    stale: int = 0
    """Evaluations since the score that patience watches was last improved."""
    judged_step: int = -1
    """The step of the last evaluation."""

    def advanced(self, *, tokens: int, cursor: Cursor) -> Self:
        """The state after one more step."""
        return replace(self, step=self.step + 1, tokens=self.tokens + tokens, cursor=cursor)

    def judged(self, *, loss: float | None, bleu: float | None, watch_bleu: bool) -> Self:
        """The state after an evaluation of its step."""
        better_loss = loss is not None and loss < (inf if self.best_loss is None else self.best_loss)
        better_bleu = bleu is not None and bleu > (-inf if self.best_bleu is None else self.best_bleu)
        better = better_bleu if watch_bleu else better_loss
        return replace(
            self,
            best_loss=loss if better_loss else self.best_loss,
            best_bleu=bleu if better_bleu else self.best_bleu,
            stale=0 if better else self.stale + 1,
            judged_step=self.step,
        )

    def to_json(self) -> dict[str, JsonValue]:
        """As a checkpoint keeps it."""
        return {
            "step": self.step,
            "tokens": self.tokens,
            "epoch": self.cursor.epoch,
            "update": self.cursor.update,
            "trained_s": self.trained_s,
            "best_loss": self.best_loss,
            "best_bleu": self.best_bleu,
            "stale": self.stale,
            "judged_step": self.judged_step,
        }

    @classmethod
    def from_json(cls, held: Mapping[str, Any]) -> Self:
        """Read what `to_json` gave."""
        rest = {name: value for name, value in held.items() if name not in ("epoch", "update")}
        return cls(cursor=Cursor(epoch=held["epoch"], update=held["update"]), **rest)
