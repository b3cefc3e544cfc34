"""The recipe: everything that says what a run learns."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from tandem.config.batch import BatchSection
from tandem.config.checkpoint import CheckpointSection
from tandem.config.clean import CleanSection
from tandem.config.data import DataSection
from tandem.config.evaluate import EvaluateSection
from tandem.config.exchange import ExchangeSection
from tandem.config.model import ModelSection
from tandem.config.optim import OptimSection
from tandem.config.section import Section
from tandem.config.subword import SubwordSection
from tandem.config.telemetry import TelemetrySection
from tandem.config.train import TrainSection

__all__ = ["Recipe"]

_SENTENCES_AN_UPDATE = 4


class Recipe(Section):
    """What a run learns: the same recipe gives the same updates on any number of machines."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
    """What the run is called: letters, digits, - _ and . with a letter or digit first."""

    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """Where all randomness comes from; the same seed gives the same run."""

    data: DataSection
    """Which text to learn from, which to watch and which to judge by."""

    clean: CleanSection = CleanSection()
    """Which sentence pairs are fit to learn from."""

    subword: SubwordSection = SubwordSection()
    """How sentences become pieces."""

    batch: BatchSection = BatchSection()
    """How much text one update learns from."""

    model: ModelSection = ModelSection()
    """The shape of the Transformer."""

    optim: OptimSection = OptimSection()
    """How gradients become new weights."""

    train: TrainSection = TrainSection()
    """What is learned at each step, and when it is enough."""

    evaluate: EvaluateSection = EvaluateSection()
    """How often the model is judged while it learns, and how."""

    checkpoint: CheckpointSection = CheckpointSection()
    """How often the run is saved, and what is kept."""

    exchange: ExchangeSection = ExchangeSection()
    """How ranks on several hosts exchange their gradients."""

    telemetry: TelemetrySection = TelemetrySection()
    """How closely the run is watched; it changes nothing of what is learnt."""

    @property
    def prepared_folder(self) -> Path:
        """Return where prepared data goes."""
        return self.data.folder or Path("prepared") / self.name

    @property
    def is_evaluated(self) -> bool:
        """Tell whether the model is judged while it learns: there is text to judge by, and a time for it."""
        timed = self.evaluate.every_steps is not None or self.evaluate.every_minutes is not None
        return timed and self.data.valid is not None

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield what does not fit together across sections."""
        yield from self._update_too_small()
        yield from self._schedule_too_long()
        yield from self._patience_without_scores()
        if self.model.tied == "all" and not self.subword.joint:
            sentence = (
                "is all, which needs one set of pieces for both languages: make it target, "
                "or subword.joint true"
            )
            yield "model.tied", sentence

    def _update_too_small(self) -> Iterator[tuple[str, str]]:
        needed = _SENTENCES_AN_UPDATE * self.subword.max_pieces
        tokens = self.batch.target_tokens
        if tokens < needed:
            sentence = (
                f"is {tokens}, too few for {_SENTENCES_AN_UPDATE} of the longest sentences: make it at least "
                f"{needed}, or subword.max_pieces at most {tokens // _SENTENCES_AN_UPDATE}"
            )
            yield "batch.target_tokens", sentence

    def _schedule_too_long(self) -> Iterator[tuple[str, str]]:
        schedule, warmup, cooldown = self.optim.schedule, self.optim.warmup_steps, self.optim.cooldown_steps
        steps = self.train.max_steps
        if schedule in {"cosine", "linear"} and warmup >= steps:
            sentence = (
                f"is {warmup}, but schedule {schedule} reaches zero at train.max_steps, {steps}: "
                f"make it at most {steps - 1}, or train.max_steps more"
            )
            yield "optim.warmup_steps", sentence
        elif cooldown and warmup + cooldown > steps:
            sentence = (
                f"is {cooldown}, which with warmup_steps, {warmup}, is more than train.max_steps, {steps}: "
                "make one of the two smaller, or train.max_steps larger"
            )
            yield "optim.cooldown_steps", sentence

    def _patience_without_scores(self) -> Iterator[tuple[str, str]]:
        if self.train.patience is None:
            return
        if not self.is_evaluated:
            cure = "evaluate.every_steps" if self.data.valid is not None else "data.valid"
            yield "train.patience", f"waits for evaluations, but there are none: set {cure}, or take it out"
        elif self.train.patience_on == "bleu" and self.evaluate.sentences == 0:
            sentence = (
                "is bleu, but evaluate.sentences is 0, so nothing is translated: make it loss, "
                "or evaluate.sentences more"
            )
            yield "train.patience_on", sentence
