"""One rank as a run builds it, whose log, clock, checkpoints, samples and probes can be turned off for a block."""

import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

from tandem.checkpoint.store import CheckpointStore
from tandem.config import CheckpointSection, Recipe, TelemetrySection
from tandem.data.batches.shape import BatchShape
from tandem.data.batches.stream import BatchStream
from tandem.parallel.world import SoloWorld, open_world
from tandem.runlog.event import Event
from tandem.runlog.layout import RunLayout
from tandem.runlog.reader import read_records
from tandem.runlog.writer import NullLog, RunLog, open_rank_log
from tandem.telemetry.clock import Phase, PhaseClock
from tandem.telemetry.sampler.child import sampling
from tandem.train.asked import Signals
from tandem.train.assemble import (
    Options,
    _build_run,
    _build_step,
    _Data,
    _open_data,
    _open_exchange,
    _open_store,
    _Place,
    _resume,
)
from tandem.train.division import build_division
from tandem.train.keep import Keeper
from tandem.train.learner import Learner
from tandem.train.loop import Run, run_training
from tandem.train.memory import keep_freed_memory
from tandem.train.meter import Meter
from tandem.train.probe import ExchangeProbe
from tandem.train.shape_choice import choose_shape
from tandem.train.state import TrainState
from tandem.train.way import choose_way, record_way

__all__ = ["Side", "SwitchedTrainer"]

_TIMEOUT_S = 60.0
_LOOK_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Which parts are on."""

    name: str
    log: bool = False
    clock: bool = False
    checkpoint: bool = False
    samples: bool = False
    """Of the host, by a process beside this one."""
    probe: bool = False
    """The first step is rehearsed without exchange, as with other ranks."""


class _SwitchLog:
    """A run log that goes where it is told at the time."""

    def __init__(self) -> None:
        self.current: RunLog = NullLog()

    def log(self, event: Event) -> None:
        self.current.log(event)

    def close(self) -> None:
        self.current.close()


class _FirstStep(ExchangeProbe):
    """A probe of the step that it is told, and of no other."""

    def is_due(self, step: int) -> bool:
        return self._world.size > 1 and step == self._every_steps


class _NoClock(PhaseClock):
    """A clock that does nothing."""

    def __init__(self) -> None:
        pass

    def restart(self) -> None:
        pass

    def phase(self, name: Phase) -> AbstractContextManager[None]:  # type: ignore[override]  # noqa: ARG002
        return nullcontext()

    def aside(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return nullcontext()

    def stamp(self) -> None:
        pass

    def seconds(self, start: object, stop: object) -> float:  # noqa: ARG002
        return math.nan

    def finish(self, step: int) -> None:
        pass

    def read(self, step: int) -> None:
        pass


class _BlockKeeper(Keeper):
    """A block's end is not a run's: nothing is saved for it, but what was begun is finished."""

    def finish(self, state: TrainState) -> None:  # noqa: ARG002  (the loop's)
        if self.store is not None:
            self.store.wait()


@dataclass(slots=True, kw_only=True)
class SwitchedTrainer:
    """Trains the same updates again and again, in blocks; nothing else than the parts differs between them."""

    place: _Place
    log: _SwitchLog
    data: _Data
    learner: Learner
    store: CheckpointStore
    shape: BatchShape
    start: TrainState
    timed: Run
    untimed: Run
    blocks: int = 0
    """Blocks so far; the first step of a block follows from it."""
    log_close_s: list[float] = field(default_factory=list)
    """Of each block with a log: how long its end was waited for."""

    @classmethod
    def build(cls, run: Path, recipe: Recipe, device: str) -> Self:
        """Build everything as a run does, for this process alone."""
        keep_freed_memory()
        log, clock = _SwitchLog(), _NoClock()
        world = open_world(device, timeout_s=_TIMEOUT_S)
        options, signals = Options(device=device), Signals(lambda _: None)
        place = _Place(run=run, recipe=recipe, options=options, world=world, log=log, signals=signals)
        data = _open_data(place, ExitStack())
        learner = Learner.build(recipe, data.subword, world)
        exchange = ExitStack().enter_context(_open_exchange(place, data, learner))
        store = _open_store(place, data, exchange)
        if store is None:
            raise SystemExit("this process is told by its environment to be a rank other than 0")
        start = _resume(place, data, learner, None, exchange=exchange)
        ways = [
            choose_way(
                learner,
                data.plan.shards,
                world=world,
                smoothing=recipe.train.label_smoothing,
                clock=each,
            )
            for each in (PhaseClock(world.device), clock)
        ]
        shape, capacity = choose_shape(
            recipe, world, data.plan, learner=learner, way=ways[0], facts=start.facts, log=log
        )
        division = build_division(
            recipe,
            world,
            data.plan,
            shape=shape,
            capacity_tokens=capacity,
            facts=start.facts,
            log=log,
        )
        way, untimed_way = (record_way(each, data.plan.shards, shape) for each in ways)
        with _open_stream(place, data, shape, start.state) as stream:
            timed = _build_run(
                place,
                data,
                learner,
                start=start,
                division=division,
                stream=stream,
                store=store,
                way=way,
                exchange=exchange,
            )
        meter = Meter(log, clock, device=world.device)
        return cls(
            place=place,
            log=log,
            data=data,
            learner=learner,
            store=store,
            shape=shape,
            start=start.state,
            timed=timed,
            untimed=replace(
                timed,
                clock=clock,
                step=_build_step(place, learner, untimed_way, exchange.exchanger),
                meter=meter,
            ),
        )

    def train(self, side: Side, steps: int) -> float:
        """Train one block; returns its seconds, until its events and its checkpoint are on the disk."""
        self.blocks += 1
        with self._sampling() if side.samples else nullcontext():
            return self._train(side, steps)

    def _train(self, side: Side, steps: int) -> float:
        # A checkpoint is due at the first step, so that its write has the rest of the block to slow down.
        state = replace(self.start, step=self.blocks * steps - 1)
        with _open_stream(self.place, self.data, self.shape, state) as stream:
            run = self._build_block(side, stream, first=state.step, steps=steps)
            begun = time.perf_counter()
            if side.log:
                self.log.current = open_rank_log(self.log_folder(self.blocks), 0)
            run_training(run, state)
            trained = time.perf_counter()
            self.log.close()
            ended = time.perf_counter()
        self.log.current = NullLog()
        if side.log:
            self.log_close_s.append(ended - trained)
        return ended - begun

    @contextmanager
    def _sampling(self) -> Iterator[None]:
        """Starting the sampler is no part of a block: it is done once a run."""
        folder = self.log_folder(self.blocks)
        with sampling(folder, every_s=TelemetrySection().sample_seconds or 1.0, gpus=[]):
            end_s = time.monotonic() + _TIMEOUT_S
            while not (RunLayout(folder).log.exists() and list(read_records(folder))):
                if time.monotonic() > end_s:
                    raise SystemExit("the sampler writes nothing")
                time.sleep(_LOOK_S)
            yield

    def time_write(self) -> float:
        """Seconds that a checkpoint takes with nothing beside it."""
        begun = time.perf_counter()
        self.timed.keeper.save(self.start)
        self.store.wait()
        return time.perf_counter() - begun

    def log_folder(self, block: int) -> Path:
        """The run folder with the log of that block alone."""
        return self.place.run / "blocks" / str(block)

    def _build_block(self, side: Side, stream: BatchStream, *, first: int, steps: int) -> Run:
        run = self.timed if side.clock else self.untimed
        # A rehearsal needs no other ranks: they are waited for, but do not slow the passes down.
        pair = SoloWorld(device=self.place.world.device, size=2 if side.probe else 1)
        run.step._probe = _FirstStep(pair, clock=run.clock, every_steps=first + 1)  # noqa: SLF001
        limit = run.recipe.train.model_copy(update={"max_steps": first + steps})
        keeper: dict[str, Any] = {each.name: getattr(run.keeper, each.name) for each in fields(Keeper)}
        keeper["rules"] = CheckpointSection(every_steps=steps if side.checkpoint else None)
        keeper["store"] = self.store if side.checkpoint else None
        return replace(
            run,
            recipe=run.recipe.model_copy(update={"train": limit}),
            stream=stream,
            keeper=_BlockKeeper(**keeper),
        )


def _open_stream(place: _Place, data: _Data, shape: BatchShape, state: TrainState) -> BatchStream:
    return BatchStream(data.plan, start=state.cursor, shape=shape, device=str(place.world.device))
