"""The subword section: how sentences become pieces."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from tandem.config.section import RecipePath, Section

__all__ = ["SubwordSection"]


class SubwordSection(Section):
    """How sentences become pieces."""

    kind: Literal["bpe", "unigram", "segmented"] = "bpe"
    """`bpe` or `unigram` trains a SentencePiece model; `segmented` takes text split with @@ as it is."""

    vocabulary: Annotated[int, Field(ge=16, le=1_000_000)] = 32_768
    """Number of pieces; padded up to a multiple of 8, which GPUs multiply faster."""

    joint: bool = True
    """One set of pieces for both languages, so that names and numbers are shared."""

    byte_fallback: bool = True
    """Spell characters without a piece of their own in bytes, so that nothing is unknown."""

    sample_sentences: Annotated[int, Field(ge=1)] = 1_000_000
    """Most sentences that the subword model is trained on; a larger corpus is sampled."""

    model: RecipePath | None = None
    """A SentencePiece model of your own, taken as it is instead of training one."""

    max_pieces: Annotated[int, Field(ge=1, le=65_535)] = 256
    """Longest sentence in pieces; a pair with more on either side is dropped and counted."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield what a model of one's own excludes."""
        if self.model is None:
            return
        if self.kind == "segmented":
            yield (
                "model",
                "cannot be used with kind segmented, which takes pieces as they are; take one of the two out",
            )
        if not self.joint:
            yield "joint", "must be true with a model of your own, which serves both languages"
