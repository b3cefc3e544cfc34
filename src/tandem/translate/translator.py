"""Text to text: lines in any order and number, translated in batches of like length."""

# Shapes: B sentences, S places of the longest one.

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import torch

from tandem.data.shards.ragged import Ragged
from tandem.data.subword.learn import Subword
from tandem.data.subword.model import SegmentedModel
from tandem.errors import TandemError
from tandem.model import PaddedTokens, Transformer
from tandem.translate.beam import Hypothesis, Marks, Search, beam_search
from tandem.translate.penalty import LengthPenalty

__all__ = ["MOST_PIECES", "Mend", "Translation", "Translator", "most_target_pieces"]

Mend: TypeAlias = Callable[[str], str]
Row: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]

MOST_PIECES = 1_024
"""Pieces of the longest line that is translated as it is."""

CPU_TOKENS = 1_024
"""Source tokens of a batch: what a step touches stays in the processor's caches."""

GPU_TOKENS = 8_192
"""Enough rows to keep a GPU busy; a `base` model's keys and values then take a few GB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """One line's translation, without line breaks."""

    text: str
    score: float
    """Log-probability divided by the length penalty."""
    pieces: int
    others: tuple["Translation", ...] = ()
    """The next best, where more than one was asked for."""


NOTHING = Translation(text="", score=0.0, pieces=0)
"""The translation of an empty line."""


def most_target_pieces(source_pieces: int) -> int:
    """Where the search ends a translation that would not end by itself."""
    return source_pieces * 3 // 2 + 20


class Translator:
    """Translates with one model; the model's mode (training or not) is as before afterwards."""

    def __init__(
        self,
        model: Transformer,
        subword: Subword,
        *,
        device: torch.device,
        beam: int = 4,
        length_penalty: float | LengthPenalty = 0.6,
        best: int = 1,
        batch_tokens: int | None = None,
        mend: Mend = str,
        on_batch: Callable[[], None] = lambda: None,
    ) -> None:
        """A number as `length_penalty` is GNMT's alpha; `batch_tokens` counts source tokens, padding included.

        `mend` brings lines into the form of the text that the model learned from. `on_batch` is called before each
        batch.
        """
        penalty = (
            length_penalty
            if isinstance(length_penalty, LengthPenalty)
            else LengthPenalty(alpha=length_penalty)
        )
        self._model, self._subword, self._device = model, subword, device
        self._search = Search(beam=beam, best=best, penalty=penalty)
        self._batch_tokens = batch_tokens or (GPU_TOKENS if device.type == "cuda" else CPU_TOKENS)
        self._mend = mend
        self._on_batch = on_batch
        self._marks = _marks(subword, vocabulary=len(model.output_weight))

    def translate(self, lines: Sequence[str], *, first_line: int = 1) -> list[Translation]:
        """The translation of each line; an empty line stays empty. `first_line` is for what an error says."""
        sources = self._subword.source.encode([self._mend(line) for line in lines])
        # Long lines will be split into sentences here.
        for number in np.flatnonzero(sources.lengths > MOST_PIECES).tolist():
            raise TandemError(
                f"Line {first_line + number:,} has {int(sources.lengths[number]):,} pieces, but at most "
                f"{MOST_PIECES:,} are translated at once: split it into sentences, one a line."
            )
        return self.translate_ids(sources)

    def translate_ids(self, sources: Ragged) -> list[Translation]:
        """The translations of encoded sentences, given without marks and of any length."""
        translations = [NOTHING] * len(sources)
        rows = np.split(sources.ids.astype(np.int64), np.cumsum(sources.lengths)[:-1])
        with self._judging():
            for numbers in self._batches(sources.lengths.tolist()):
                self._on_batch()
                found = self._search_in_memory([rows[number] for number in numbers])
                for number, hypotheses in zip(numbers, found, strict=True):
                    translations[number] = self._decode(hypotheses)
        return translations

    @contextmanager
    def _judging(self) -> Iterator[None]:
        was_training = self._model.training
        self._model.eval()
        try:
            with torch.inference_mode():
                yield
        finally:
            self._model.train(was_training)

    def _batches(self, lengths: list[int]) -> Iterator[list[int]]:
        """Numbers of like long sentences, longest first; empty ones have nothing to be searched for."""
        by_length = sorted(
            (number for number, pieces in enumerate(lengths) if pieces), key=lambda n: -lengths[n]
        )
        start = 0
        while start < len(by_length):
            size = max(1, self._batch_tokens // (lengths[by_length[start]] + 1))
            yield by_length[start : start + size]
            start += size

    def _search_in_memory(self, rows: list[Row]) -> list[list[Hypothesis]]:
        """Search all at once, or in halves where memory does not suffice: training may hold most of it."""
        try:
            return self._search_batch(rows)
        except torch.OutOfMemoryError:
            if len(rows) < 2:
                raise
        torch.cuda.empty_cache()
        middle = len(rows) // 2
        return [*self._search_in_memory(rows[:middle]), *self._search_in_memory(rows[middle:])]

    def _search_batch(self, rows: list[Row]) -> list[list[Hypothesis]]:
        special = self._subword.target.special  # of both sides, as in the shards
        lengths = [len(row) + 1 for row in rows]
        ids_BS = np.full((len(rows), max(lengths)), special.pad)
        for number, row in enumerate(rows):
            ids_BS[number, : len(row)] = row
            ids_BS[number, len(row)] = special.eos
        source = PaddedTokens(
            ids=torch.from_numpy(ids_BS).to(self._device), lengths=torch.tensor(lengths).to(self._device)
        )
        limits = [most_target_pieces(len(row)) for row in rows]
        cache = self._model.start(
            self._model.encode(source), max_steps=max(limits) + 1, beam=self._search.beam
        )
        return beam_search(
            lambda ids_R: self._model.logits(self._model.step(ids_R, cache)),
            cache.select,
            limits,
            search=self._search,
            marks=self._marks,
            device=self._device,
        )

    def _decode(self, hypotheses: list[Hypothesis]) -> Translation:
        if not hypotheses:  # the model has diverged
            return Translation(text="", score=float("-inf"), pieces=0)
        first, *others = (
            Translation(text=self._text(found.ids), score=found.score, pieces=len(found.ids))
            for found in hypotheses
        )
        return replace(first, others=tuple(others))

    def _text(self, ids: Sequence[int]) -> str:
        # Pieces that stand for bytes can spell a line break.
        return self._subword.target.decode(ids).replace("\n", " ").replace("\r", " ")


def _marks(subword: Subword, *, vocabulary: int) -> Marks:
    special, pieces = subword.target.special, subword.target.pieces
    # Segmented text may hold unknown words, and a model of it says so; SentencePiece spells them out.
    unknown = () if isinstance(subword.target, SegmentedModel) else (special.unk,)
    banned = (special.bos, special.pad, *unknown, *range(pieces, vocabulary))
    return Marks(start=special.bos, end=special.eos, banned=banned)
