"""The data card: what prepared training data holds, written by the makers and read by the reports."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Self, get_args, get_origin

from tandem.artefact import JsonValue, write_atomic
from tandem.errors import TandemError
from tandem.files import read_json

__all__ = [
    "Batching",
    "Changed",
    "Cleaned",
    "Corpus",
    "CorpusFile",
    "DataCard",
    "Dropped",
    "DroppedPair",
    "EncodedPair",
    "HeldOut",
    "Histogram",
    "Languages",
    "Raw",
    "SideCounts",
    "SideHistograms",
    "SideRates",
    "Stored",
    "Vocabulary",
    "read_card",
    "write_card",
]

VERSION = 1
_MOST = 1 << 53
_MOST_ITEMS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Languages:
    """Language codes, as `en` and `de`."""

    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SideCounts:
    """One count for each side."""

    source: int
    target: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SideRates:
    """One ratio for each side."""

    source: float
    target: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Counts of sentences by length in pieces; a bucket goes from over the edge before it up to its own."""

    edges: tuple[int, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideHistograms:
    """One histogram for each side."""

    source: Histogram
    target: Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusFile:
    """One raw file, as it was read."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """One corpus: its files, the lines read and kept, and its sampling weight."""

    name: str
    files: tuple[CorpusFile, ...]
    lines: int
    kept: int
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """All corpora before cleaning; bytes on disk of all files, lines of one side."""

    bytes: int
    lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """All corpora after cleaning; bytes of UTF-8 text, line ends included."""

    source_bytes: int
    target_bytes: int
    lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedPair:
    """A pair that was dropped, to be looked at."""

    origin: str
    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """How many pairs one reason took out, and some of them."""

    reason: str
    count: int
    examples: tuple[DroppedPair, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """How many sentences one normalisation mended."""

    name: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The subword model; `unknown_pieces` counts the unknown piece in the encoded text of both sides."""

    size: int
    kind: str
    unknown_pieces: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The encoded pairs on disk."""

    pairs: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """A set kept for evaluation, and how many training pairs were removed because they are in it."""

    name: str
    pairs: int
    words: SideCounts
    tokens: SideCounts
    overlap_removed: int
    overlap_checked: bool
    """False where the recipe keeps such pairs, so that a count of 0 says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """Padding as a share of all positions of both sides, at `target_tokens` an update."""

    target_tokens: int
    padded_share: float
    packed_share: float
    updates_per_epoch: int
    pairs_per_update: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedPair:
    """A pair with the pieces that the model sees."""

    source: str
    target: str
    source_pieces: tuple[str, ...]
    target_pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCard:
    """Everything that is known about one prepared data set; tokens are pieces with the end mark."""

    languages: Languages
    corpora: tuple[Corpus, ...]
    raw: Raw
    cleaned: Cleaned
    dropped: tuple[Dropped, ...]
    changed: tuple[Changed, ...]
    words: SideCounts
    tokens: SideCounts
    lengths: SideHistograms
    fertility: SideRates
    """Pieces a word."""
    vocabulary: Vocabulary
    stored: Stored
    held_out: tuple[HeldOut, ...]
    batching: Batching
    examples: tuple[EncodedPair, ...]

    def to_json(self) -> dict[str, JsonValue]:
        """The card as a JSON object with its version."""
        return {"version": VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, held: Mapping[str, JsonValue]) -> Self:
        """Build from a JSON object; what a newer writer added is passed over."""
        version = held.get("version")
        if isinstance(version, int) and version > VERSION:
            raise TandemError(
                f"The data card has format {version}, but this Tandem reads {VERSION}: use a newer Tandem."
            )
        try:
            card: Self = _build(cls, held, "card")
        except ValueError as error:
            raise TandemError(f"The data card is damaged at {error}: prepare the data again.") from error
        return card


def write_card(path: Path, card: DataCard) -> None:
    """Write the card as a JSON file that a person can read."""
    text = json.dumps(card.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
    write_atomic(path, text.encode("utf-8", "backslashreplace") + b"\n")


def read_card(path: Path) -> DataCard:
    """Read a card that `write_card` wrote."""
    try:
        held = read_json(path)
    except FileNotFoundError:
        raise TandemError(f"There is no data card {path}: prepare the data first.") from None
    except ValueError:
        raise TandemError(f"The data card {path} is damaged: prepare the data again.") from None
    return DataCard.from_json(held if isinstance(held, dict) else {})


def _build(kind: Any, held: Any, where: str) -> Any:
    """Build a value of the annotated type `kind`; raises ValueError with the place of what does not fit."""
    if is_dataclass(kind) and isinstance(held, Mapping):
        named = {
            each.name: _build(each.type, held.get(each.name), f"{where}.{each.name}") for each in fields(kind)
        }
        return kind(**named)  # type: ignore[operator]
    if get_origin(kind) is tuple and isinstance(held, list | tuple) and len(held) <= _MOST_ITEMS:
        return tuple(_build(get_args(kind)[0], item, f"{where}.{at}") for at, item in enumerate(held))
    if type(held) is not kind and (kind, type(held)) != (float, int):
        raise ValueError(where)
    # No count of a corpus is below 0, and no number of one infinite.
    if kind in {int, float} and not 0 <= held <= _MOST:
        raise ValueError(where)
    return kind(held)
