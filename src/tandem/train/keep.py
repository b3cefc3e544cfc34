"""Checkpoints of a run: when one is due, and what goes into it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor

from tandem.artefact import JsonValue
from tandem.checkpoint.store import CheckpointStore, Scores, Snapshot
from tandem.config import CheckpointSection
from tandem.errors import TandemError
from tandem.parallel.world import World
from tandem.train.alike import name_host
from tandem.train.asked import Asked
from tandem.train.run_exchange import RunExchange
from tandem.train.state import TrainState

__all__ = ["Keeper", "of_first_rank"]

UNJUDGED = Scores(loss=None, bleu=None)


@dataclass(slots=True, kw_only=True)
class Keeper:
    """Saves the run; one rank for each disk has a store, and the others have nothing to write."""

    rules: CheckpointSection
    world: World
    hosts: Sequence[str]
    """Of each rank."""
    store: CheckpointStore | None
    weights: Callable[[], Mapping[str, Tensor]]
    """The weights that translate."""
    rest: Callable[[], Mapping[str, Tensor]]
    """Everything else that the next step needs."""
    facts: Callable[[int], Mapping[str, JsonValue]]
    """What else a run that is resumed at this step must know."""
    exchange: RunExchange
    """Which keeps residuals beside checkpoints."""
    check: Callable[[int], None]
    """Raises TandemError where ranks differ in weights or moments after so many steps; all ranks ask together."""
    elapsed_s: Callable[[], float]
    """Seconds of training, the same on every rank; all ranks ask together."""
    on_saved: Callable[[], None]
    saved_step: int = 0

    def is_due(self, state: TrainState, asked: Asked) -> bool:
        """Whether to save now; the same on every rank."""
        every = self.rules.every_steps
        return asked.save or (every is not None and state.step % every == 0)

    def save(self, state: TrainState, scores: Scores = UNJUDGED) -> None:
        """Take a checkpoint, which is written in the background."""
        self.check(state.step)
        self.saved_step = state.step
        self.exchange.prepare_save(self.store)
        state = replace(state, trained_s=self.elapsed_s())
        if self.store is not None:
            snapshot = Snapshot(
                step=state.step,
                model=self.weights(),
                optimizer=self.rest(),
                state={**state.to_json(), **self.facts(state.step)},
                scores=scores,
            )
            self.store.save(snapshot)
        self.exchange.save(state.step)
        self.on_saved()

    def finish(self, state: TrainState) -> None:
        """Save the last step, unless that was done, and wait until it is safely on some disk.

        One that could not take it has said so in its log; where none could, TandemError on every rank.
        """
        if self.saved_step != state.step:
            self.save(state)
        told = cast(list[str | None], self.world.gather(None if self.store is None else _wait(self.store)))
        failures = [name_host(self.hosts, rank, failure) for rank, failure in enumerate(told) if failure]
        if failures and "" not in told:
            raise TandemError(failures[0])
        self.exchange.finish(state.step)


def of_first_rank(seconds: float, world: World) -> float:
    """Rank 0's value, for clocks differ; on one host that of each rank, as rank 0 alone writes it down."""
    if world.is_one_host:
        return seconds
    held = torch.tensor([seconds], dtype=torch.float64, device=world.device)
    world.share(held)
    return float(held)


def _wait(store: CheckpointStore) -> str:
    """Why the last checkpoint could not be written; empty where it was."""
    try:
        store.wait()
    except TandemError as error:
        return str(error)
    return ""
