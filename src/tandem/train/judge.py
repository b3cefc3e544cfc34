"""When the model is judged, and what follows: a better best, and a checkpoint that carries its scores."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tandem.config import Recipe
from tandem.runlog.event import EvaluationFinished
from tandem.runlog.writer import RunLog
from tandem.train.asked import Asked
from tandem.train.keep import Keeper
from tandem.train.state import TrainState
from tandem.train.validate import Validator

__all__ = ["Judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Evaluates and saves at the recipe's times; without a valid set there is no validator, and it only saves."""

    recipe: Recipe
    validator: Validator | None
    weights: Callable[[], AbstractContextManager[None]]
    """A block in which the model has the weights that translate."""
    keeper: Keeper
    log: RunLog
    on_finished: Callable[[], None]
    """Called after each evaluation, however it ended: clocks begin anew."""

    def is_due(self, state: TrainState, asked: Asked) -> bool:
        """Whether to evaluate now, the same on every rank; a run that is to stop does so first."""
        return not asked.stop and (asked.evaluate or self._is_time(state))

    def is_owed(self, state: TrainState) -> bool:
        """Whether this step should have been judged, but a signal came between."""
        return self.validator is not None and state.judged_step != state.step and self._is_time(state)

    def _is_time(self, state: TrainState) -> bool:
        every = self.recipe.evaluate.every_steps
        return every is not None and state.step > 0 and state.step % every == 0

    def __call__(self, state: TrainState) -> TrainState:
        """Evaluate and save; an evaluation that a signal cuts short judges nothing, and the end of the run saves."""
        if self.validator is None:
            self.keeper.save(state)
        else:
            state = self._judge(self.validator, state)
        self.on_finished()
        return state

    def _judge(self, validator: Validator, state: TrainState) -> TrainState:
        # No scores of ranks that differ: a save would notice only after the evaluation.
        self.keeper.check(state.step)
        begun = time.perf_counter()
        with self.weights():
            scores = validator(state.step)
        if scores is None:
            return state
        watch_bleu = self.recipe.train.patience_on == "bleu"
        judged = state.judged(loss=scores.loss, bleu=scores.bleu, watch_bleu=watch_bleu)
        self.log.log(
            EvaluationFinished(
                step=state.step,
                duration_s=time.perf_counter() - begun,
                is_best_loss=judged.best_loss != state.best_loss,
                is_best_bleu=judged.best_bleu != state.best_bleu,
            )
        )
        self.keeper.save(judged, scores)
        return judged

    def finish(self, state: TrainState) -> TrainState:
        """Judge the last step, unless that was done or cannot be."""
        if self.validator is None or state.judged_step == state.step:
            return state
        return self(state)
