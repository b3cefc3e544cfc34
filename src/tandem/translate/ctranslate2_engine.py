"""The engine that runs an exported model with CTranslate2: much faster on a CPU than our own.

Its beam search is ours but for where it stops: CTranslate2 counts the translations that have ended, ours knows when
none can become better. So it is asked for more than are wanted, and these are compared by our length penalty.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from tandem.errors import TandemError
from tandem.files import read_json
from tandem.translate.engine import Found, Sentence
from tandem.translate.marks import Marks
from tandem.translate.said import Said, best_of, cut, told, with_alignment, with_odds
from tandem.translate.wish import Wish

__all__ = ["Ctranslate2Engine", "has_ctranslate2", "load_ctranslate2", "read_vocabularies"]

BATCH_TOKENS = {"cpu": 1_024, "cuda": 8_192}
"""Source tokens of a batch, padding included."""

PATIENCE = 1.25
"""The search goes on until so many times its beam have ended.

With 1, CTranslate2's default, it stops before ours in about 1 sentence of a hundred, always with something worse, at a
cost of up to half a BLEU; with this none of 1,500 was found to differ; it takes 7 % more of the processors' time.
"""

IMPOSSIBLE = -1e9
"""Log-probabilities below are CTranslate2's mark for places of the beam that hold nothing."""

INTRA_THREADS = 4
"""Threads that share one batch, at most; more of them wait for each other."""

SMALL_BYTES = 16_000_000
"""Weights of a model whose batches are not shared: its threads would wait longer for each other than they compute.

On two cores that others use as well, a single sentence took the demo's model (4 MB in int8) 1.6 ms with one thread and
14.5 ms with two; one of the base size (48 MB) is faster with two. Where between them that turns was not measured.
"""


def has_ctranslate2() -> bool:
    """Whether CTranslate2 is installed; it is not loaded."""
    return find_spec("ctranslate2") is not None


def load_ctranslate2() -> Any:
    """The library, which is an extra."""
    try:
        return import_module("ctranslate2")
    except ImportError:
        raise TandemError(
            "CTranslate2 is not installed: pip install 'tandem-nmt[export]', or choose the engine torch."
        ) from None


def read_vocabularies(folder: Path) -> tuple[list[str], list[str]]:
    """The tokens of source and target by id."""
    shared = folder / "shared_vocabulary.json"
    paths = (
        [shared] if shared.exists() else [folder / f"{side}_vocabulary.json" for side in ("source", "target")]
    )
    try:
        tokens = [read_json(path) for path in paths]
    except (OSError, ValueError) as error:
        raise TandemError(
            f"{folder} has no vocabulary that can be read ({error}): export the model again."
        ) from error
    return tokens[0], tokens[-1]


def _compute(library: Any, device: str, quantization: str) -> str:
    """As the weights are stored, or with all numbers kept where the device computes no such ones."""
    return quantization if quantization in library.get_supported_compute_types(device) else "float32"


def _is_small(folder: Path) -> bool:
    weights = folder / "model.bin"
    return weights.is_file() and weights.stat().st_size < SMALL_BYTES


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(slots=True, kw_only=True, eq=False)
class _Chunk:
    """Sentences that are searched together, and what of it is there."""

    sentences: Sequence[Sentence]
    batches: int
    """Yet to be read."""
    said: list[list[Said]]
    again: list[int] = field(default_factory=list)
    """Sentences for which the search has gone where ours would not."""


class Ctranslate2Engine:
    """Searches with an exported model; translations are the same as our own engine's but for rounding and near ties.

    The seed of a sampling is taken once: what is drawn also depends on what was drawn before.
    """

    name = "ctranslate2"

    def __init__(
        self,
        folder: Path,
        *,
        marks: Marks,
        device: str = "cpu",
        threads: int | None = None,
        quantization: str = "float32",
        longest: int | None = None,
        batch_tokens: int | None = None,
    ) -> None:
        """`quantization` is what the weights were exported as, and `longest` the most places that the model knows.

        `threads` are those of the CPU, all if not given.
        """
        library = load_ctranslate2()
        self._marks, self._longest = marks, longest
        self._batch_tokens = batch_tokens or BATCH_TOKENS[device]
        self._source_tokens, self._target_tokens = read_vocabularies(folder)
        self._ids = {token: number for number, token in enumerate(self._target_tokens)}
        self._banned = frozenset(marks.banned)
        self._seed = library.set_random_seed
        threads = threads or _cores()
        intra = 1 if device == "cpu" and _is_small(folder) else min(INTRA_THREADS, threads)
        workers = max(1, threads // intra)
        self._workers = workers
        self._ahead = 2 * workers
        """Batches that are searched or queued while one is read: none of the workers waits for the next."""

        def load(workers: int, intra: int) -> Any:
            return library.Translator(
                str(folder),
                device=device,
                compute_type=_compute(library, device, quantization),
                inter_threads=workers,
                intra_threads=intra,
            )

        # Each worker draws from numbers of its own, and which one gets a batch is chance: one alone can be repeated.
        self._build_drawer: Callable[[], Any] = partial(load, 1, min(INTRA_THREADS, threads))
        self._drawer: Any = None
        try:
            self._translator = load(workers, intra)
        except (RuntimeError, ValueError) as error:
            raise TandemError(
                f"CTranslate2 cannot load {folder} on {device} ({str(error).strip()}): export the model again, or "
                "choose another device."
            ) from error

    def search(self, sentences: Sequence[Sentence], wish: Wish) -> list[list[Found]]:
        """Translations of each sentence, best first."""
        return next(self.stream([sentences], wish))

    def stream(self, chunks: Iterable[Sequence[Sentence]], wish: Wish) -> Iterator[list[list[Found]]]:
        """Translations of each chunk in turn; the next one is taken and its search begins before one is told."""
        for chunk in self._searched(chunks, wish, suppress=wish.sampling is not None):
            said = self._drawn(chunk) if wish.sampling else self._redone(chunk, wish)
            chosen = [best_of(some, wish) for some in self._weighed(chunk.sentences, said)]
            yield [
                [told(each, wish) for each in some] for some in self._explained(chunk.sentences, chosen, wish)
            ]

    def _explained(
        self, sentences: Sequence[Sentence], chosen: list[list[Said]], wish: Wish
    ) -> list[list[Said]]:
        if wish.token_scores:
            unasked = [[each if each.odds else replace(each, total=None) for each in some] for some in chosen]
            chosen = self._weighed(sentences, unasked)
        return self._aligned(sentences, chosen) if wish.alignment else chosen

    def _is_too_long(self, sentence: Sentence) -> bool:
        return self._longest is not None and _most_pieces(sentence) >= self._longest

    def _refuse_too_long(self, sentences: Sequence[Sentence]) -> NoReturn:
        raise TandemError(
            f"A sentence or its prefix has {max(map(_most_pieces, sentences)):,} pieces, but the exported model knows "
            f"{self._longest:,} places: split it, or translate with the engine torch."
        )

    def _drawn(self, chunk: _Chunk) -> list[list[Said]]:
        # Temperature and top pieces change what is drawn, not what it is worth.
        return [
            [replace(cut(each, sentence), total=None) for each in some]
            for some, sentence in zip(chunk.said, chunk.sentences, strict=True)
        ]

    def _redone(self, chunk: _Chunk, wish: Wish) -> list[list[Said]]:
        """What was found, and where that is not as ours what is found without pieces that are never said."""
        if not chunk.again:
            return chunk.said
        sentences = [chunk.sentences[number] for number in chunk.again]
        redone = next(self._searched([sentences], wish, suppress=True))
        for number, sentence, some in zip(chunk.again, sentences, redone.said, strict=True):
            kept = [each for each in some if not self._has_banned(sentence, each)]
            chunk.said[number] = [replace(each, total=None) for each in kept]
        return chunk.said

    def _must_redo(self, sentence: Sentence, said: Sequence[Said]) -> bool:
        """Whether the search has gone where ours would not: to pieces never said, or beyond the sentence's limit."""
        return any(len(each.ids) > sentence.most or self._has_banned(sentence, each) for each in said)

    def _searched(
        self, chunks: Iterable[Sequence[Sentence]], wish: Wish, *, suppress: bool
    ) -> Iterator[_Chunk]:
        """The chunks in turn; while batches are read, those behind them are searched.

        With `suppress`, pieces that are never said are forbidden, and only sentences of one limit stand together.
        Without, they keep their share of the probability, as in our own search.
        """
        waiting: deque[tuple[_Chunk, list[int], list[Any]]] = deque()
        for sentences in chunks:
            is_too_long = any(map(self._is_too_long, sentences))
            # A seed would change what is being drawn; and of what is refused, all that came before is told.
            while waiting and (is_too_long or wish.sampling is not None):
                yield from self._collected(*waiting.popleft(), wish=wish, suppress=suppress)
            if is_too_long:
                self._refuse_too_long(sentences)
            if wish.sampling is not None:
                self._seed(wish.sampling.seed & 0xFFFF_FFFF)
            batches = list(self._batches(sentences, by_limit=suppress)) or [[]]
            chunk = _Chunk(sentences=sentences, batches=len(batches), said=[[] for _ in sentences])
            for numbers in batches:
                batch = [sentences[number] for number in numbers]
                waiting.append((chunk, numbers, self._submit(batch, wish, suppress=suppress)))
                if len(waiting) > self._ahead:
                    yield from self._collected(*waiting.popleft(), wish=wish, suppress=suppress)
        while waiting:
            yield from self._collected(*waiting.popleft(), wish=wish, suppress=suppress)

    def _collected(
        self, chunk: _Chunk, numbers: Sequence[int], results: Sequence[Any], *, wish: Wish, suppress: bool
    ) -> Iterator[_Chunk]:
        """Read a batch; the chunk, where that was its last."""
        for number, result in zip(numbers, results, strict=True):
            sentence = chunk.sentences[number]
            said = self._read(result.result(), sentence, wish)
            if not suppress and self._must_redo(sentence, said):
                chunk.again.append(number)
            elif wish.sampling is None and all(each.total is not None for each in said):
                # What is not wanted need not be kept until the chunk is read.
                said = best_of(said, wish)
            chunk.said[number] = said
        chunk.batches -= 1
        if not chunk.batches:
            yield chunk

    def _batches(self, sentences: Sequence[Sentence], *, by_limit: bool) -> Iterator[list[int]]:
        """Numbers of like long sentences, longest first; with and without a prefix apart."""

        def kind(number: int) -> tuple[bool, int]:
            return bool(sentences[number].prefix), sentences[number].most if by_limit else 0

        order = sorted(
            range(len(sentences)), key=lambda number: (kind(number), len(sentences[number].source))
        )
        batch: list[int] = []
        for number in reversed(order):
            longest = len(sentences[batch[0]].source) + 1 if batch else 0
            if batch and (kind(number) != kind(batch[0]) or (len(batch) + 1) * longest > self._batch_tokens):
                yield batch
                batch = []
            batch.append(number)
        if batch:
            yield batch

    def _submit(self, batch: Sequence[Sentence], wish: Wish, *, suppress: bool) -> list[Any]:
        """Answers to wait for, one a sentence."""
        if not batch:
            return []
        sources = [[self._source_tokens[piece] for piece in sentence.source] for sentence in batch]
        prefixes = [[self._target_tokens[piece] for piece in sentence.prefix] for sentence in batch]
        # What has not ended there is ended, as in our own search: it is scored with an end mark.
        steps = max(1, *(sentence.most for sentence in batch))
        banned = [[self._target_tokens[piece]] for piece in self._marks.banned] if suppress else None
        asked: list[Any] = self._translator_for(wish).translate_batch(
            sources,
            # An empty prefix is not the same as none: its first step may not end in the lower places of the beam.
            prefixes if batch[0].prefix else None,
            asynchronous=True,
            max_input_length=0,
            max_decoding_length=min(steps, (self._longest or steps + 1) - 1),
            min_decoding_length=0,
            return_scores=True,
            return_end_token=True,
            suppress_sequences=banned,
            **_how(wish),
        )
        return asked

    def _translator_for(self, wish: Wish) -> Any:
        if wish.sampling is None or self._workers == 1:
            return self._translator
        self._drawer = self._drawer or self._build_drawer()
        return self._drawer

    def _read(self, result: Any, sentence: Sentence, wish: Wish) -> list[Said]:
        alpha = _how(wish)["length_penalty"]
        found = []
        for tokens, score in zip(result.hypotheses, result.scores, strict=True):
            ids = tuple(map(self._ids.__getitem__, tokens))
            ended, total = ids[-1] == self._marks.end, score * len(ids) ** alpha
            if total > IMPOSSIBLE:
                # Scores leave out the prefix, and of what was cut off the end mark.
                known = total if ended and not sentence.prefix else None
                found.append(Said(ids=ids[:-1] if ended else ids, total=known))
        return found

    def _has_banned(self, sentence: Sentence, said: Said) -> bool:
        said_freely = said.ids[len(sentence.prefix) :] if sentence.prefix else said.ids
        return not self._banned.isdisjoint(said_freely)

    def _weighed(self, sentences: Sequence[Sentence], said: list[list[Said]]) -> list[list[Said]]:
        """The same with the log-probabilities that are missing."""
        rows = [row for row in _pairs(sentences, said) if row[1].total is None]
        if not rows:
            return said
        results = self._translator.score_batch(
            *self._tokens(rows),
            max_input_length=0,
            max_batch_size=self._batch_tokens,
            batch_type="tokens",
        )
        odds = iter([tuple(result.log_probs) for result in results])
        return [
            [with_odds(each, next(odds)) if each.total is None else each for each in some] for some in said
        ]

    def _aligned(self, sentences: Sequence[Sentence], said: list[list[Said]]) -> list[list[Said]]:
        """The same with alignments, found by making the model say all of it once more.

        What a beam tells of its first step is of another sentence of the batch, in CTranslate2 4.8.
        """
        rows = [row for row in _pairs(sentences, said) if row[1].ids]
        results = self._translator.translate_batch(
            *self._tokens(rows),
            max_input_length=0,
            max_batch_size=self._batch_tokens,
            batch_type="tokens",
            beam_size=1,
            max_decoding_length=max((len(each.ids) for _, each in rows), default=1),
            return_attention=True,
        )
        looks = iter([result.attention[0] for result in results])
        return [[with_alignment(each, next(looks)) if each.ids else each for each in some] for some in said]

    def _tokens(self, rows: Sequence[tuple[Sentence, Said]]) -> tuple[list[list[str]], list[list[str]]]:
        return (
            [[self._source_tokens[piece] for piece in sentence.source] for sentence, _ in rows],
            [[self._target_tokens[piece] for piece in each.ids] for _, each in rows],
        )


def _most_pieces(sentence: Sentence) -> int:
    return max(len(sentence.source), len(sentence.prefix))


def _pairs(sentences: Sequence[Sentence], said: Sequence[Sequence[Said]]) -> list[tuple[Sentence, Said]]:
    return [(sentence, each) for sentence, some in zip(sentences, said, strict=True) for each in some]


def _how(wish: Wish) -> Mapping[str, float | int]:
    """CTranslate2's words for a wish."""
    if wish.sampling is not None:
        return {
            "beam_size": 1,
            "num_hypotheses": wish.best,
            "patience": wish.best,
            "length_penalty": 0,
            "sampling_topk": wish.sampling.top,
            "sampling_temperature": wish.sampling.temperature,
        }
    return {
        "beam_size": wish.beam,
        "num_hypotheses": wish.beam,
        "patience": PATIENCE,
        "length_penalty": wish.penalty.alpha,
    }
