"""Evaluation: losses that can be compared, and true BLEU and chrF of what the model writes."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, isfinite, nan
from pathlib import Path
from typing import cast

import numpy as np

from tandem.artefact import write_atomic
from tandem.checkpoint.layout import step_folder
from tandem.checkpoint.store import Scores
from tandem.config import EvaluateSection
from tandem.data.corpus.held_out import HeldOutSet
from tandem.data.shards.shardset import ShardSet
from tandem.errors import TandemError
from tandem.files import make_folder
from tandem.model import Transformer
from tandem.parallel.world import World
from tandem.runlog.event import EvaluationStarted, LossMeasured, SampleTranslated, TranslationScored
from tandem.runlog.writer import RunLog
from tandem.train.measured import MeasuredSet, measure_loss
from tandem.train.precision import Precision
from tandem.translate.score import FEWEST, score
from tandem.translate.share import put_back, share_of
from tandem.translate.translator import Translator

__all__ = ["PROBE", "VALID", "Validator"]

VALID = "valid"
PROBE = "probe"

PORTIONS = {"cpu": 64, "cuda": 4096}
"""Sentences that a rank translates before it asks whether the run is to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validator:
    """Judges the model as it is; every rank takes its share of the work."""

    model: Transformer
    translator: Translator
    sets: tuple[MeasuredSet, ...]
    shards: ShardSet
    """The valid set as the model reads it."""
    text: HeldOutSet
    """The same as people read it."""
    rules: EvaluateSection
    tokenize: str
    """How words are split for BLEU."""
    world: World
    precision: Precision
    run: Path
    keeps: bool
    """Whether this rank keeps the translations in the run's folder."""
    log: RunLog
    is_stopped: Callable[[], bool]
    """Whether any rank was asked to stop; all ranks ask together."""

    def __call__(self, step: int) -> Scores | None:
        """Measure, write down, and return the scores on the valid text, alike on every rank; None when stopped."""
        self.log.log(EvaluationStarted(step=step))
        losses: dict[str, float] = {}
        for each in self.sets:
            losses[each.name] = self._measure(each, step)
            if self.is_stopped():
                return None
        loss = losses[VALID] if isfinite(losses[VALID]) else None
        if self.rules.sentences == 0:
            return Scores(loss=loss, bleu=None)
        begun = time.perf_counter()
        hypotheses = self._translate()
        if hypotheses is None:
            return None
        return Scores(loss=loss, bleu=self._score(step, hypotheses, begun))

    def _measure(self, measured: MeasuredSet, step: int) -> float:
        begun = time.perf_counter()
        loss = measure_loss(measured, self.model, world=self.world, precision=self.precision)
        self.log.log(
            LossMeasured(
                step=step,
                set=measured.name,
                loss=loss,
                target_tokens=measured.target_tokens,
                pairs=measured.pairs,
                duration_s=time.perf_counter() - begun,
            )
        )
        return loss

    def _translate(self) -> list[str] | None:
        """What the model writes for the valid text, in order; None when stopped."""
        lengths = [len(line) for line in self.text.source[: self.rules.sentences]]
        mine = share_of(lengths, self.world.rank, self.world.size)
        portion = PORTIONS[self.world.device.type]
        texts: list[str] = []
        for start in range(0, ceil(len(lengths) / self.world.size), portion):
            if self.is_stopped():
                return None
            pieces, _ = self.shards.gather(np.array(mine[start : start + portion], np.int64))
            # In full precision, as `tandem translate` does: the same model must get the same score there.
            texts += [each.text for each in self.translator.translate_ids(pieces)]
        held = cast(list[list[str]], self.world.gather(texts))
        return put_back(held, lengths)

    def _score(self, step: int, hypotheses: list[str], begun: float) -> float:
        sources, references = (side[: len(hypotheses)] for side in (self.text.source, self.text.target))
        scores = score(hypotheses, references, tokenize=self.tokenize, lowercase=self.rules.lowercase)
        file = self._keep(step, hypotheses) if self.keeps else ""
        has_interval = len(hypotheses) >= FEWEST
        self.log.log(
            TranslationScored(
                step=step,
                set=VALID,
                bleu=scores.bleu,
                bleu_signature=scores.bleu_signature,
                chrf=scores.chrf,
                chrf_signature=scores.chrf_signature,
                sentences=len(hypotheses),
                hypotheses=file,
                duration_s=time.perf_counter() - begun,
                bleu_low=scores.bleu_low if has_interval else nan,
                bleu_high=scores.bleu_high if has_interval else nan,
            )
        )
        for number in _spread(len(hypotheses), self.rules.samples):
            self.log.log(
                SampleTranslated(
                    step=step,
                    set=VALID,
                    number=number,
                    source=sources[number],
                    reference=references[number],
                    hypothesis=hypotheses[number],
                )
            )
        return scores.bleu

    def _keep(self, step: int, hypotheses: list[str]) -> str:
        """Where the translations lie in the run; a disk that refuses them stops nothing."""
        file = step_folder(Path("hypotheses"), step) / f"{VALID}.txt"
        try:
            make_folder((self.run / file).parent, parents=True, below=self.run)
            write_atomic(self.run / file, "".join(f"{line}\n" for line in hypotheses).encode())
        except (OSError, TandemError):
            return ""
        return str(file)


def _spread(count: int, samples: int) -> list[int]:
    """Places spread evenly over a set, the same at each evaluation."""
    shown = min(samples, count)
    return [count * number // shown for number in range(shown)]
