"""Builds what evaluates a model while it learns."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tandem.config import Recipe
from tandem.data.batches.plan import UpdatePlan
from tandem.data.corpus.held_out import HeldOutSet
from tandem.data.prepared import Prepared
from tandem.data.subword.learn import Subword
from tandem.data.subword.model import SegmentedModel, join_pieces
from tandem.parallel.world import World
from tandem.runlog.writer import RunLog
from tandem.train.capacity import layout_for_evaluation
from tandem.train.learner import Learner
from tandem.train.measured import build_measured
from tandem.train.seeds import derived_seed
from tandem.train.validate import PROBE, VALID, Validator
from tandem.translate.marks import build_marks
from tandem.translate.torch_engine import TorchEngine
from tandem.translate.translator import Translator
from tandem.translate.wish import recipe_wish

__all__ = ["maybe_build_validator"]


def maybe_build_validator(
    recipe: Recipe,
    prepared: Prepared,
    subword: Subword,
    learner: Learner,
    *,
    plan: UpdatePlan,
    world: World,
    run: Path,
    log: RunLog,
    keeps: bool,
    is_stopped: Callable[[], bool],
) -> Validator | None:
    """For the recipe's valid set; None where it has none."""
    if recipe.data.valid is None:
        return None
    layout = layout_for_evaluation(recipe, world.device, learner.precision.name)
    shards = prepared.held_out(VALID)
    sets = [build_measured(VALID, shards, world=world, layout=layout, seed=recipe.seed)]
    if recipe.evaluate.probe_pairs:
        probe = build_measured(
            PROBE,
            plan.shards,
            world=world,
            layout=layout,
            seed=derived_seed(recipe.seed, PROBE),
            most_pairs=recipe.evaluate.probe_pairs,
        )
        sets.append(probe)
    marks = build_marks(subword, vocabulary=len(learner.model.output_weight))
    engine = TorchEngine(learner.model, marks=marks, device=world.device, on_batch=world.pulse.beat)
    return Validator(
        model=learner.model,
        translator=Translator(engine, subword, wish=recipe_wish(recipe)),
        sets=tuple(sets),
        shards=shards,
        text=_readable(prepared.held_out_text(VALID), subword),
        rules=recipe.evaluate,
        tokenize=recipe.evaluate.tokenizer(recipe.data.target_language),
        world=world,
        precision=learner.precision,
        run=run,
        keeps=keeps,
        log=log,
        is_stopped=is_stopped,
    )


def _readable(text: HeldOutSet, subword: Subword) -> HeldOutSet:
    """Words, also where the files have pieces: scores are of words."""
    if not isinstance(subword.target, SegmentedModel):
        return text
    source, target = ([join_pieces(line) for line in side] for side in (text.source, text.target))
    return replace(text, source=source, target=target)
