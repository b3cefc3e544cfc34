"""What a public corpus is: parts, each read from archives on a publisher's server."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tandem.errors import TandemError

__all__ = ["Archive", "Form", "Part", "PublicCorpus", "Split", "parse_languages"]

Split = Literal["train", "valid", "test"]
Form = Literal["txt", "tsv", "sgm", "wmt21xml", "ted"]
"""How text lies in a file: lines, columns, SGML, WMT's XML since 2021, or lines between the tags of TED."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """One file on a server; size and checksum where they are known."""

    url: str
    size_bytes: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Aligned text of one origin: one archive that holds both sides, or one archive a side."""

    name: str
    split: Split
    languages: tuple[str, str]
    """Languages of the sides in the order in which the files have them."""
    archives: tuple[Archive, ...]
    members: tuple[str, ...] = ()
    """Patterns of the files inside a tar or zip archive; empty where the archive is the text itself."""
    form: Form = "txt"
    columns: tuple[int, int] = (0, 1)
    """Columns of the two sides, for form tsv."""
    pairs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicCorpus:
    """A corpus in one pair of languages, ready to be fetched."""

    name: str
    folder: str
    """Its own for each pair of languages, so that one does not replace another."""
    summary: str
    licence: str
    languages: tuple[str, str]
    """Source and target, as they were asked for."""
    parts: tuple[Part, ...]

    @property
    def archives(self) -> tuple[Archive, ...]:
        """Every archive once, in the order of the parts."""
        return tuple({archive.url: archive for part in self.parts for archive in part.archives}.values())

    @property
    def splits(self) -> tuple[Split, ...]:
        """Every split once, in the order of the parts."""
        return tuple({part.split: None for part in self.parts})

    @property
    def download_bytes(self) -> int | None:
        """Size of all archives, or None where one is not known."""
        return _maybe_sum(archive.size_bytes for archive in self.archives)

    def pairs(self, split: Split) -> int | None:
        """Count the pairs of a split: 0 where there is none, None where a part's count is not known."""
        return _maybe_sum(part.pairs for part in self.parts if part.split == split)


def parse_languages(text: str) -> tuple[str, str]:
    """Split a pair of language codes such as `en-de`."""
    codes = text.split("-")
    if len(codes) != 2 or not all(code.replace("_", "").isalnum() and code.isascii() for code in codes):
        raise TandemError(f"{text!r} is not a pair of languages: write two codes with a hyphen, as in en-de.")
    return codes[0], codes[1]


def _maybe_sum(counts: Iterator[int | None]) -> int | None:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total
