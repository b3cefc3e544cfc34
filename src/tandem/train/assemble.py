"""The one place that builds a rank of a run, and takes it apart again."""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch

from tandem import __version__
from tandem.artefact import JsonValue
from tandem.checkpoint.store import CheckpointStore
from tandem.config import Recipe, recipe_yaml
from tandem.data.batches.plan import UpdatePlan
from tandem.data.batches.shape import BatchShape
from tandem.data.batches.stream import BatchStream
from tandem.data.corpus.held_out import HeldOutSet
from tandem.data.prepared import Prepared, open_prepared
from tandem.data.subword.learn import Subword
from tandem.data.subword.model import SegmentedModel, join_pieces
from tandem.errors import TandemError
from tandem.lock import using
from tandem.parallel.world import World, open_world
from tandem.runlog.event import (
    BatchFitted,
    RunFinished,
    StopAsked,
    TrainingFinished,
)
from tandem.runlog.layout import RunLayout
from tandem.runlog.writer import NullLog, RunLog, open_rank_log
from tandem.telemetry.clock import PhaseClock
from tandem.train.announce import batches_planned, recipe_mark, run_started, training_started
from tandem.train.asked import Clockwork, Signals
from tandem.train.capacity import (
    build_shape,
    choose_capacity,
    describe_shape,
    layout_for,
    layout_for_evaluation,
    maybe_same_shape,
)
from tandem.train.fit import find_capacity
from tandem.train.judge import Judge
from tandem.train.keep import Keeper
from tandem.train.learner import Learner
from tandem.train.loop import Run, run_training
from tandem.train.match import DATA, check_match, describe_data
from tandem.train.measured import build_measured
from tandem.train.memory import keep_freed_memory
from tandem.train.meter import LAG_STEPS, Meter
from tandem.train.schedule import build_schedule
from tandem.train.seeds import derived_seed
from tandem.train.state import TrainState
from tandem.train.step import TrainingStep
from tandem.train.validate import PROBE, VALID, Validator
from tandem.train.way import Way, choose_way, record_way
from tandem.translate.translator import Translator

__all__ = ["Options", "train_rank"]

BATCHES = "batches"


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


def train_rank(run: Path, recipe: Recipe, options: Options) -> None:
    """Be one rank of a run until it ends; which one, the environment says."""
    keep_freed_memory()
    with ExitStack() as stack:
        world = open_world(options.device, timeout_s=options.timeout_s)
        log = open_rank_log(run, world.rank)
        stack.callback(log.close)
        signals = Signals(lambda name: log.log(StopAsked(signal=name)))
        stack.enter_context(signals.caught())
        # Nobody may make the data again while it is learnt from.
        stack.enter_context(using(recipe.prepared_folder))
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """Where the run begins, or goes on."""

    state: TrainState
    facts: Mapping[str, Any]
    """What the checkpoint says besides; empty for a new run."""
    resumed_from: str


def _train(place: _Place) -> str:
    begun = time.monotonic()
    data = _open_data(place)
    learner = Learner.build(place.recipe, data.subword, place.world)
    store = _open_store(place, data)
    with ExitStack() as stack:
        if store is not None:
            stack.callback(store.close)
            store.reserve(model=learner.weights(), optimizer=learner.rest())
        start = _resume(place, data, learner, store)
        way = choose_way(
            learner,
            data.plan.shards,
            world=place.world,
            smoothing=place.recipe.train.label_smoothing,
            clock=PhaseClock(place.world.device),
        )
        shape = _choose_shape(place, data, learner, start=start, way=way)
        way = record_way(way, data.plan.shards, shape)
        stream = BatchStream(
            data.plan,
            start=start.state.cursor,
            shape=shape,
            rank=place.world.rank,
            ranks=place.world.size,
            device=str(place.world.device),
        )
        stack.enter_context(stream)
        run = _build_run(place, data, learner, start=start, shape=shape, stream=stream, store=store, way=way)
        started = training_started(
            place.recipe,
            place.world,
            state=start.state,
            resumed_from=start.resumed_from,
            learner=learner,
            plan=data.plan,
            shape=shape,
            way=way,
        )
        planned = batches_planned(
            data.prepared, data.plan, epoch=start.state.cursor.epoch, layout=shape.layout
        )
        place.told.log(planned)
        place.told.log(started)
        state, reason = run_training(run, start.state)
    place.told.log(
        TrainingFinished(
            step=state.step, tokens=state.tokens, reason=reason, duration_s=time.monotonic() - begun
        )
    )
    return reason


def _open_data(place: _Place) -> _Data:
    # The folder may have been prepared for a recipe that differs in what is learnt, not in the data.
    prepared = replace(open_prepared(place.recipe.prepared_folder), recipe=place.recipe)
    mark = describe_data(prepared)
    same: Mapping[str, JsonValue] = {
        "tandem": __version__,
        "torch": str(torch.__version__),
        "recipe": recipe_mark(place.recipe),
        "data": mark,
    }
    for what, value in same.items():
        place.world.agree(value, f"the {what}")
    return _Data(prepared=prepared, subword=prepared.subword(), plan=prepared.plan(), mark=mark)


def _open_store(place: _Place, data: _Data) -> CheckpointStore | None:
    if place.world.rank:
        return None
    rules = place.recipe.checkpoint
    return CheckpointStore(
        RunLayout(place.run).checkpoints,
        recipe_text=recipe_yaml(place.recipe),
        subword_folder=data.prepared.subword_folder,
        keep_last=rules.keep_last,
        keep_best=rules.keep_best,
        log=place.log,
    )


def _resume(place: _Place, data: _Data, learner: Learner, store: CheckpointStore | None) -> _Start:
    """Rank 0 reads the newest good checkpoint, and the others get it from there."""
    restored = store.newest() if store is not None else None
    told: JsonValue = None
    if restored is not None:
        check_match(restored, place.recipe, data.mark)
        told = {"state": restored.state, "folder": restored.folder.name}
    held = cast(Mapping[str, Any] | None, place.world.gather(told)[0])
    if held is None:
        return _Start(state=TrainState(cursor=data.plan.cursor(0)), facts={}, resumed_from="")
    learner.restore(restored, place.world)
    facts = dict(held["state"])
    state = TrainState.from_json({name: facts.pop(name) for name in TrainState().to_json()})
    return _Start(state=state, facts=facts, resumed_from=held["folder"])


def _choose_shape(place: _Place, data: _Data, learner: Learner, *, start: _Start, way: Way) -> BatchShape:
    world, options = place.world, place.options
    layout = layout_for(place.recipe, world.device, learner.precision.name, fused=way.name != "plain")
    same = maybe_same_shape(start.facts.get(BATCHES, {}), world)
    if same is not None and same.layout == layout and options.batch_tokens is None:
        return same
    tokens = options.batch_tokens or choose_capacity(place.recipe, world.device, fused=way.name != "plain")
    if options.fit:
        tokens = find_capacity(way.learn, data.plan.shards, layout, buckets=learner.buckets)
    shape = build_shape(data.plan, layout=layout, world=world, capacity_tokens=tokens)
    if options.fit:
        memory = torch.cuda.max_memory_allocated(world.device)
        place.log.log(
            BatchFitted(
                layout=shape.layout,
                source_tokens=shape.source_tokens,
                target_tokens=shape.target_tokens,
                memory_bytes=memory,
            )
        )
    return shape


def _build_run(
    place: _Place,
    data: _Data,
    learner: Learner,
    *,
    start: _Start,
    shape: BatchShape,
    stream: BatchStream,
    store: CheckpointStore | None,
    way: Way,
) -> Run:
    recipe, world, clock = place.recipe, place.world, way.clock
    clockwork = Clockwork(recipe, trained_s=start.state.trained_s)
    keeper = Keeper(
        rules=recipe.checkpoint,
        store=store,
        weights=learner.weights,
        rest=learner.rest,
        facts={DATA: data.mark, BATCHES: describe_shape(shape, world)},
        elapsed_s=lambda: clockwork.elapsed_s,
        on_saved=lambda: _begin_anew(clock, clockwork.saved),
        saved_step=start.state.step,
    )
    return Run(
        recipe=recipe,
        plan=data.plan,
        stream=stream,
        step=_build_step(place, learner, way),
        clock=clock,
        asks=lambda: clockwork.asks(stop=bool(place.signals.name), by_clock=world.rank == 0),
        meter=Meter(place.log, clock=clock, lag=LAG_STEPS[world.device.type]),
        judge=Judge(
            recipe=recipe,
            validator=_build_validator(place, data, learner),
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


def _build_step(place: _Place, learner: Learner, way: Way) -> TrainingStep:
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
    )


def _build_validator(place: _Place, data: _Data, learner: Learner) -> Validator | None:
    recipe, world = place.recipe, place.world
    if recipe.data.valid is None:
        return None
    layout = layout_for_evaluation(recipe, world.device, learner.precision.name)
    shards = data.prepared.held_out(VALID)
    sets = [build_measured(VALID, shards, world=world, layout=layout, seed=recipe.seed)]
    if recipe.evaluate.probe_pairs:
        probe = build_measured(
            PROBE,
            data.plan.shards,
            world=world,
            layout=layout,
            seed=derived_seed(recipe.seed, PROBE),
            most_pairs=recipe.evaluate.probe_pairs,
        )
        sets.append(probe)
    translator = Translator(
        learner.model,
        data.subword,
        device=world.device,
        beam=recipe.evaluate.beam,
        length_penalty=recipe.evaluate.length_penalty,
    )
    return Validator(
        model=learner.model,
        translator=translator,
        sets=tuple(sets),
        shards=shards,
        text=_readable(data.prepared.held_out_text(VALID), data.subword),
        rules=recipe.evaluate,
        world=world,
        precision=learner.precision,
        run=place.run,
        log=place.told,
        is_stopped=place.is_stopped,
    )


def _readable(text: HeldOutSet, subword: Subword) -> HeldOutSet:
    """Words, also where the files have pieces: scores are of words."""
    if not isinstance(subword.target, SegmentedModel):
        return text
    source, target = ([join_pieces(line) for line in side] for side in (text.source, text.target))
    return replace(text, source=source, target=target)
