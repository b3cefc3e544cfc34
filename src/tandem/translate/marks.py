"""The ids that mean something to a search: where it starts, where it ends, what it never says."""

from dataclasses import dataclass

from tandem.data.subword.learn import Subword
from tandem.data.subword.model import SegmentedModel

__all__ = ["Marks", "build_marks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """The ids that mean something to the search."""

    start: int
    end: int
    banned: tuple[int, ...] = ()
    """Never chosen. The probabilities stay those of the model: what these have is lost."""


def build_marks(subword: Subword, *, vocabulary: int) -> Marks:
    """The marks of a subword model, for a model with so many rows of output."""
    special, pieces = subword.target.special, subword.target.pieces
    # Segmented text may hold unknown words, and a model of it says so; SentencePiece spells them out.
    unknown = () if isinstance(subword.target, SegmentedModel) else (special.unk,)
    banned = (special.bos, special.pad, *unknown, *range(pieces, vocabulary))
    return Marks(start=special.bos, end=special.eos, banned=banned)
