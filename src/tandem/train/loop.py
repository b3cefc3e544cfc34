"""The training loop, on one screen."""

from collections.abc import Callable
from dataclasses import dataclass

from tandem.config import Recipe
from tandem.data.batches.plan import UpdatePlan
from tandem.data.batches.stream import BatchStream
from tandem.telemetry.clock import PhaseClock
from tandem.train.asked import Asked
from tandem.train.judge import Judge
from tandem.train.keep import Keeper
from tandem.train.meter import Meter
from tandem.train.state import TrainState
from tandem.train.step import TrainingStep
from tandem.train.stop import reason_to_stop

__all__ = ["Run", "run_training"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """All that the loop uses, ready to go."""

    recipe: Recipe
    plan: UpdatePlan
    stream: BatchStream
    step: TrainingStep
    clock: PhaseClock
    asks: Callable[[], Asked]
    """What this rank asks for now."""
    meter: Meter
    judge: Judge
    keeper: Keeper


def run_training(run: Run, state: TrainState) -> tuple[TrainState, str]:
    """Train from a state until a rule or a signal ends it; returns the last state and why it ended."""
    asked = Asked()
    run.clock.restart()
    if run.judge.is_owed(state):
        state, asked = _judge(run, state)
    while (reason := reason_to_stop(state, asked, run.recipe.train)) is None:
        with run.clock.phase("data"):
            update = next(run.stream)
        result = run.step(update, step=state.step + 1, asked=run.asks())
        state = state.advanced(tokens=update.target_tokens, cursor=run.plan.next(update.cursor))
        asked = run.meter.add(result, epoch=update.cursor.epoch)
        if run.judge.is_due(state, asked) or run.keeper.is_due(state, asked):
            asked |= run.meter.drain()
            if run.judge.is_due(state, asked):
                state, stop = _judge(run, state)
                asked |= stop
            else:
                run.keeper.save(state)
    asked |= run.meter.drain()
    if not asked.stop:
        state = run.judge.finish(state)
    run.keeper.finish(state)
    return state, reason


def _judge(run: Run, state: TrainState) -> tuple[TrainState, Asked]:
    """Judge and save; a signal that cut it short is a wish to stop, and the judging is made up for later."""
    state = run.judge(state)
    return state, Asked(stop=run.judge.is_owed(state))
