"""What every engine that computes translations is: encoded sentences in, scored pieces out."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tandem.translate.wish import Wish

__all__ = ["Engine", "Found", "Sentence", "StreamingEngine", "stream_search"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One sentence to translate, as ids without marks."""

    source: tuple[int, ...]
    prefix: tuple[int, ...] = ()
    """How the translation must begin."""
    most: int
    """Pieces after which a translation is ended that would not end by itself, the prefix included."""
    number: int = 0
    """Tells sentences of a call apart where pieces are drawn at random."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One translation of a sentence, as ids without marks."""

    ids: tuple[int, ...]
    score: float
    """Log-probability, end mark included, divided by the length penalty; of a sample, undivided."""
    token_scores: tuple[float, ...] = ()
    """Log-probabilities of the pieces and of the end mark, where they were asked for."""
    alignment: tuple[int, ...] = ()
    """For each piece the place of the source piece that it looked at most, where that was asked for."""


class Engine(Protocol):
    """Computes translations with one model."""

    name: str
    """`torch` or `ctranslate2`."""

    def search(self, sentences: Sequence[Sentence], wish: Wish) -> list[list[Found]]:
        """Translations of each sentence, best first; what stands in a call together changes no result.

        The engine makes batches as suits it. Sentences have at least one piece. None are found for a sentence where
        the model gives no finite probability.
        """
        ...


@runtime_checkable
class StreamingEngine(Engine, Protocol):
    """An engine that computes by itself while its caller does other things."""

    def stream(self, chunks: Iterable[Sequence[Sentence]], wish: Wish) -> Iterator[list[list[Found]]]:
        """What `search` gives for each chunk, in turn; the next one is taken before one is given."""
        ...


def stream_search(
    engine: Engine, chunks: Iterable[Sequence[Sentence]], wish: Wish
) -> Iterator[list[list[Found]]]:
    """What is found for each chunk, in turn; a chunk may have no sentence."""
    if isinstance(engine, StreamingEngine):
        return engine.stream(chunks, wish)
    return (engine.search(chunk, wish) if chunk else [] for chunk in chunks)
