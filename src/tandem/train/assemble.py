"""The one place that builds a rank of a run, and takes it apart again."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from tandem.checkpoint.store import CheckpointStore
from tandem.config import Recipe, recipe_yaml
from tandem.data.batches.plan import UpdatePlan
from tandem.data.batches.shape import BatchShape
from tandem.data.batches.stream import BatchStream
from tandem.data.prepared import Prepared, open_prepared
from tandem.data.subword.learn import Subword
from tandem.errors import TandemError
from tandem.lock import using
from tandem.parallel.world import World, open_world
from tandem.runlog.event import RunFinished, StopAsked, TrainingFinished
from tandem.runlog.layout import RunLayout
from tandem.runlog.writer import NullLog, RunLog, open_rank_log
from tandem.telemetry.clock import PhaseClock
from tandem.telemetry.peak import measure_device
from tandem.train.alike import check_alike
from tandem.train.announce import batches_planned, run_started, training_started
from tandem.train.asked import Clockwork, Signals
from tandem.train.balancer import Balancer
from tandem.train.capacity import describe_shape
from tandem.train.disks import find_writers
from tandem.train.division import Division, build_division
from tandem.train.evaluator import maybe_build_validator
from tandem.train.exchanger import Exchanger
from tandem.train.judge import Judge
from tandem.train.keep import Keeper, of_first_rank
from tandem.train.learner import Learner
from tandem.train.loop import Run, run_training
from tandem.train.match import DATA, check_match, describe_data, describe_files
from tandem.train.memory import keep_freed_memory
from tandem.train.meter import Meter
from tandem.train.resume import Start, find_start
from tandem.train.run_exchange import RunExchange, open_exchange
from tandem.train.sampled import sampling_host
from tandem.train.schedule import build_schedule
from tandem.train.shape_choice import BATCHES, choose_shape
from tandem.train.start_from import start_from
from tandem.train.step import TrainingStep
from tandem.train.stop import ASKED
from tandem.train.validate import Validator
from tandem.train.way import Way, choose_way, record_way
from tandem.train.weight_check import check_weights

__all__ = ["Options", "train_rank"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """With what a recipe is trained, as far as a rank must know."""

    device: str = "auto"
    batch_tokens: int | None = None
    """Tokens a side of a micro-batch; derived where none is given."""
    fit: bool = False
    """Find the largest micro-batch by trying."""
    timeout_s: float = 600.0
    """How long a rank waits for the others before it gives up."""


def train_rank(run: Path, recipe: Recipe, options: Options) -> str:
    """Be one rank of a run until it ends; which one, the environment says.

    Gives the name of the signal that ended it, if this rank got one; empty in all other cases.
    """
    keep_freed_memory()
    with ExitStack() as stack:
        world = open_world(options.device, timeout_s=options.timeout_s)
        log = open_rank_log(run, world.rank)
        stack.callback(log.close)
        signals = Signals(lambda name: log.log(StopAsked(signal=name)))
        stack.enter_context(signals.caught())
        place = _Place(run=run, recipe=recipe, options=options, world=world, log=log, signals=signals)
        log.log(run_started(recipe, world))
        try:
            reason = _train(place)
        except TandemError as error:
            log.log(RunFinished(reason=f"failed: {error}"))
            raise
        log.log(RunFinished(reason=reason))
        # Only now: to leave in an orderly way takes all ranks, and one that failed must not wait for the others.
        world.close()
    return signals.name if reason == ASKED else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a rank stands."""

    run: Path
    recipe: Recipe
    options: Options
    world: World
    log: RunLog
    signals: Signals

    @property
    def told(self) -> RunLog:
        """For facts that are the same on every rank: told once."""
        return self.log if self.world.rank == 0 else NullLog()

    def is_stopped(self) -> bool:
        """Whether any rank was asked to stop; all ranks ask together."""
        asked = torch.tensor([float(bool(self.signals.name))], device=self.world.device)
        self.world.sum(asked)
        return bool(asked > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Data:
    """What the run learns from."""

    prepared: Prepared
    subword: Subword
    plan: UpdatePlan
    mark: str
    hosts: tuple[str, ...]
    """Of each rank."""
    writers: tuple[int, ...]
    """Ranks that write checkpoints."""


def _train(place: _Place) -> str:
    begun = time.monotonic()
    with ExitStack() as stack:
        data = _open_data(place, stack)
        stack.enter_context(sampling_host(place.run, place.recipe.telemetry, place.world))
        learner = Learner.build(place.recipe, data.subword, place.world)
        place.world.barrier()
        place.log.log(measure_device(place.world.device, learner.precision.name))
        exchange = stack.enter_context(_open_exchange(place, data, learner))
        store = _open_store(place, data, exchange)
        if store is not None:
            stack.callback(store.close)
            store.reserve(model=learner.weights(), optimizer=learner.rest())
        start = _resume(place, data, learner, store, exchange=exchange)
        way = choose_way(
            learner,
            data.plan.shards,
            world=place.world,
            smoothing=place.recipe.train.label_smoothing,
            clock=PhaseClock(place.world.device),
        )
        division = _divide(place, data, learner, start=start, way=way)
        shape = division.shape
        way = record_way(way, data.plan.shards, shape)
        stream = BatchStream(
            data.plan,
            start=start.state.cursor,
            shape=shape,
            rank=place.world.rank,
            ranks=place.world.size,
            device=str(place.world.device),
            steps_done=start.state.step,
            portions=division.portions,
        )
        stack.enter_context(stream)
        run = _build_run(
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
        _announce(place, data, learner, start=start, shape=shape, way=way)
        exchange.exchanger.announce(start.state.step)
        division.announce(start.state.step)
        state, reason = run_training(run, start.state)
    place.told.log(
        TrainingFinished(
            step=state.step, tokens=state.tokens, reason=reason, duration_s=time.monotonic() - begun
        )
    )
    return reason


def _announce(
    place: _Place, data: _Data, learner: Learner, *, start: Start, shape: BatchShape, way: Way
) -> None:
    started = training_started(
        place.recipe,
        place.world,
        start=start,
        checkpoint_hosts=tuple(data.hosts[rank] for rank in data.writers),
        learner=learner,
        plan=data.plan,
        shape=shape,
        way=way,
    )
    planned = batches_planned(data.prepared, data.plan, epoch=start.state.cursor.epoch, layout=shape.layout)
    place.told.log(planned)
    place.told.log(started)


def _open_data(place: _Place, stack: ExitStack) -> _Data:
    """Open the data, and see that all ranks have the same; nobody may make it again before the stack is closed."""
    recipe, world = place.recipe, place.world
    try:
        stack.enter_context(using(recipe.prepared_folder))
        # The folder may have been prepared for a recipe that differs in what is learnt, not in the data.
        prepared = replace(open_prepared(recipe.prepared_folder), recipe=recipe)
        files, subword, plan = describe_files(prepared), prepared.subword(), prepared.plan()
        mark = describe_data(prepared)
    except (OSError, TandemError) as error:
        # All ranks end with the same sentence: this one is among those that raise it.
        check_alike(world, recipe, {}, failure=_told(error))
        raise
    hosts = check_alike(world, recipe, files)
    writers = find_writers(place.run, world)
    return _Data(prepared=prepared, subword=subword, plan=plan, mark=mark, hosts=hosts, writers=writers)


def _told(error: OSError | TandemError) -> str:
    if isinstance(error, TandemError):
        return str(error)
    return f"Cannot read {error.filename}: {error.strerror}; check the disk and your rights to it."


def _open_exchange(place: _Place, data: _Data, learner: Learner) -> AbstractContextManager[RunExchange]:
    return open_exchange(
        place.recipe,
        learner,
        place.world,
        run=place.run,
        host=data.hosts[place.world.rank],
        timeout_s=place.options.timeout_s,
        log=place.log,
    )


def _open_store(place: _Place, data: _Data, exchange: RunExchange) -> CheckpointStore | None:
    if place.world.rank not in data.writers:
        return None
    rules = place.recipe.checkpoint
    return CheckpointStore(
        RunLayout(place.run).checkpoints,
        recipe_text=recipe_yaml(place.recipe),
        subword_folder=data.prepared.subword_folder,
        keep_last=max(rules.keep_last, exchange.least_kept),
        keep_best=rules.keep_best,
        log=place.log,
        on_wait=place.world.pulse.beat,
    )


def _resume(
    place: _Place,
    data: _Data,
    learner: Learner,
    store: CheckpointStore | None,
    *,
    exchange: RunExchange,
) -> Start:
    start = find_start(
        store,
        learner,
        world=place.world,
        hosts=data.hosts,
        first=data.plan.cursor(0),
        check=lambda restored: check_match(restored, place.recipe, data.mark),
        is_whole=exchange.has_all_residuals(),
    )
    exchange.resume(start.state.step, start.facts)
    if place.recipe.train.start_from is not None and not start.resumed_from:
        start_from(place.recipe.train.start_from, learner, data.subword, place.world)
    return start


def _divide(place: _Place, data: _Data, learner: Learner, *, start: Start, way: Way) -> Division:
    shape, capacity = choose_shape(
        place.recipe,
        place.world,
        data.plan,
        learner=learner,
        way=way,
        facts=start.facts,
        log=place.log,
        batch_tokens=place.options.batch_tokens,
        fit=place.options.fit,
    )
    return build_division(
        place.recipe,
        place.world,
        data.plan,
        shape=shape,
        capacity_tokens=capacity,
        facts=start.facts,
        log=place.told,
    )


def _build_run(
    place: _Place,
    data: _Data,
    learner: Learner,
    *,
    start: Start,
    division: Division,
    stream: BatchStream,
    store: CheckpointStore | None,
    way: Way,
    exchange: RunExchange,
) -> Run:
    recipe, world, clock = place.recipe, place.world, way.clock
    clockwork = Clockwork(recipe, trained_s=start.state.trained_s)
    keeper = Keeper(
        rules=recipe.checkpoint,
        world=world,
        hosts=data.hosts,
        store=store,
        weights=learner.weights,
        rest=learner.rest,
        facts=lambda step: {
            DATA: data.mark,
            BATCHES: describe_shape(division.shape, world),
            **exchange.exchanger.facts(step),
            **division.facts(),
        },
        exchange=exchange,
        check=lambda step: check_weights(learner.optimizer.replicated(), world, step=step),
        elapsed_s=lambda: of_first_rank(clockwork.elapsed_s, world),
        on_saved=lambda: _begin_anew(clock, clockwork.saved),
        saved_step=start.state.step,
    )
    return Run(
        recipe=recipe,
        plan=data.plan,
        stream=stream,
        step=_build_step(place, learner, way, exchange.exchanger, division.balancer),
        clock=clock,
        asks=lambda: clockwork.asks(stop=bool(place.signals.name), by_clock=world.rank == 0),
        meter=Meter(place.log, clock, device=world.device, balancer=division.balancer, exchange=exchange),
        judge=Judge(
            recipe=recipe,
            validator=_maybe_build_validator(place, data, learner, keeps=store is not None),
            weights=learner.optimizer.averaged,
            keeper=keeper,
            log=place.told,
            on_finished=lambda: _begin_anew(clock, clockwork.evaluated),
        ),
        keeper=keeper,
    )


def _begin_anew(clock: PhaseClock, note: Callable[[], None]) -> None:
    """Evaluations and checkpoints are no part of the next step's time."""
    note()
    clock.restart()


def _build_step(
    place: _Place, learner: Learner, way: Way, exchanger: Exchanger, balancer: Balancer | None = None
) -> TrainingStep:
    recipe = place.recipe
    return TrainingStep(
        way.learn,
        world=place.world,
        buckets=learner.buckets,
        optimizer=learner.optimizer,
        precision=learner.precision,
        schedule=build_schedule(recipe.optim, width=recipe.model.width, max_steps=recipe.train.max_steps),
        seed=recipe.seed,
        clock=way.clock,
        probe_steps=recipe.telemetry.probe_steps,
        exchanger=exchanger,
        balancer=balancer,
    )


def _maybe_build_validator(place: _Place, data: _Data, learner: Learner, *, keeps: bool) -> Validator | None:
    return maybe_build_validator(
        place.recipe,
        data.prepared,
        data.subword,
        learner,
        plan=data.plan,
        world=place.world,
        run=place.run,
        log=place.told,
        keeps=keeps,
        is_stopped=place.is_stopped,
    )
