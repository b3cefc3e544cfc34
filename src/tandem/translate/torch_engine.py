"""Our own engine: searches with a model in PyTorch, on a CPU or a GPU."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tandem.model import Transformer
from tandem.translate.beam import Hypothesis, Search, Select, Start, beam_search
from tandem.translate.engine import Found, Sentence
from tandem.translate.marks import Marks
from tandem.translate.sample import draw_samples
from tandem.translate.wish import Wish
from tandem.translate.witness import pad_rows, question

if TYPE_CHECKING:
    from tandem.translate.recorded import RecordedSearch

__all__ = ["TorchEngine"]

CPU_TOKENS = 1_024
"""Source tokens of a batch: what a step touches stays in the processor's caches."""

GPU_TOKENS = 16_384
"""Enough rows to keep a GPU busy; a `base` model's keys and values then take a few GB."""

MOST_ROWS = 4_096
"""Hypotheses that are followed at once on a GPU: with more, the logits of a step would take gigabytes."""


class TorchEngine:
    """Searches with one model; the model's mode (training or not) is as before afterwards."""

    name = "torch"

    def __init__(
        self,
        model: Transformer,
        *,
        marks: Marks,
        device: torch.device,
        batch_tokens: int | None = None,
        on_batch: Callable[[], None] = lambda: None,
    ) -> None:
        """`batch_tokens` counts source tokens, padding included. `on_batch` is called before each batch."""
        self._model, self._marks, self._device = model, marks, device
        self._batch_tokens = batch_tokens or (GPU_TOKENS if device.type == "cuda" else CPU_TOKENS)
        self._on_batch = on_batch
        self._recorded = _build_recorded(model, marks) if device.type == "cuda" else None

    def search(self, sentences: Sequence[Sentence], wish: Wish) -> list[list[Found]]:
        """Translations of each sentence, best first; what stands in a call together changes no result."""
        results: list[list[Found]] = [[] for _ in sentences]
        rows = wish.best if wish.sampling else wish.beam
        batches = list(self._batches([len(sentence.source) for sentence in sentences], rows=rows))
        if self._recorded is not None and wish.sampling is None:
            self._recorded.expect(
                [[sentences[number] for number in numbers] for numbers in batches],
                beam=wish.beam,
                best=wish.best,
            )
        with self._judging():
            for numbers in batches:
                self._on_batch()
                found = self._search_in_memory([sentences[number] for number in numbers], wish)
                for number, each in zip(numbers, found, strict=True):
                    results[number] = each
        return results

    @contextmanager
    def _judging(self) -> Iterator[None]:
        was_training = self._model.training
        self._model.eval()
        try:
            with torch.inference_mode():
                yield
        finally:
            self._model.train(was_training)
            # A model that goes on learning needs the memory, and its weights may lie elsewhere next time.
            if was_training and self._recorded is not None:
                self._recorded.forget()

    def _batches(self, lengths: list[int], *, rows: int) -> Iterator[list[int]]:
        """Numbers of like long sentences, longest first, of which each takes so many rows."""
        by_length = sorted(range(len(lengths)), key=lambda number: -lengths[number])
        start = 0
        while start < len(by_length):
            size = max(1, self._batch_tokens // (lengths[by_length[start]] + 1))
            if self._recorded is not None:  # so many as steps are recorded for
                size = 1 << (max(1, min(size, MOST_ROWS // rows)).bit_length() - 1)
            yield by_length[start : start + size]
            start += size

    def _search_in_memory(self, sentences: list[Sentence], wish: Wish) -> list[list[Found]]:
        """Search all at once, or in halves where memory does not suffice: training may hold most of it."""
        try:
            return self._search_batch(sentences, wish)
        except torch.OutOfMemoryError:
            if self._recorded is not None:
                self._recorded.forget()
            if len(sentences) < 2:
                raise
        torch.cuda.empty_cache()
        middle = len(sentences) // 2
        return [
            *self._search_in_memory(sentences[:middle], wish),
            *self._search_in_memory(sentences[middle:], wish),
        ]

    def _search_batch(self, sentences: list[Sentence], wish: Wish) -> list[list[Found]]:
        hypotheses = self._draw(sentences, wish) if wish.sampling else self._beam(sentences, wish)
        found = [[Found(ids=each.ids, score=each.score) for each in some] for some in hypotheses]
        if not (wish.token_scores or wish.alignment):
            return found
        return self._explained(sentences, found, wish)

    def _beam(self, sentences: list[Sentence], wish: Wish) -> list[list[Hypothesis]]:
        search = Search(beam=wish.beam, best=wish.best, penalty=wish.penalty)
        if self._recorded is not None:
            try:
                return self._recorded(sentences, search)
            except torch.OutOfMemoryError:
                raise
            except Exception as error:  # noqa: BLE001  (compilers fail in many ways, and there is another way)
                self._recorded = None
                _warn(error)
        step, select = self._start(sentences, rows=wish.beam)
        return beam_search(
            step,
            select,
            [Start(sentence.most, sentence.prefix) for sentence in sentences],
            search=search,
            marks=self._marks,
            device=self._device,
        )

    def _draw(self, sentences: list[Sentence], wish: Wish) -> list[list[Hypothesis]]:
        assert wish.sampling is not None
        step, _ = self._start(sentences, rows=wish.best)
        return draw_samples(
            step,
            sentences,
            sampling=wish.sampling,
            draws=wish.best,
            marks=self._marks,
            device=self._device,
        )

    def _start(self, sentences: list[Sentence], *, rows: int) -> tuple[Callable[[Tensor], Tensor], Select]:
        """The model's next step for so many rows of each sentence, and what tells it which rows go on."""
        ended = [(*sentence.source, self._marks.end) for sentence in sentences]
        source = pad_rows(ended, pad=self._model.pad, device=self._device)
        cache = self._model.start(
            self._model.encode(source),
            max_steps=max(sentence.most for sentence in sentences) + 1,
            beam=rows,
        )
        return lambda ids_R: self._model.logits(self._model.step(ids_R, cache)), cache.select

    def _explained(
        self, sentences: list[Sentence], found: list[list[Found]], wish: Wish
    ) -> list[list[Found]]:
        """The same with what the model says of them, asked in one pass over all second best ones and so on."""
        explained: list[list[Found]] = [[] for _ in found]
        for place in range(max(map(len, found))):
            rows = [(number, some[place]) for number, some in enumerate(found) if place < len(some)]
            pairs = [(sentences[number].source, each.ids) for number, each in rows]
            told = question(self._model, pairs, marks=self._marks)
            for (number, each), said in zip(rows, told, strict=True):
                explained[number].append(
                    replace(
                        each,
                        token_scores=said.token_scores if wish.token_scores else (),
                        alignment=said.alignment if wish.alignment else (),
                    )
                )
        return explained


def _build_recorded(model: Transformer, marks: Marks) -> "RecordedSearch | None":
    if find_spec("triton") is None:
        return None
    # Only now: where there is no GPU, there may be no Triton.
    from tandem.translate.recorded import RecordedSearch  # noqa: PLC0415

    return RecordedSearch(model, marks=marks)


def _warn(error: Exception) -> None:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    warnings.warn(
        f"Translating takes several times as long as it could, since the fast search cannot be had here: {reason}",
        RuntimeWarning,
        stacklevel=2,
    )
