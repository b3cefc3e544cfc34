"""A line of the catalogue: a corpus before its languages are chosen."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tandem.data.corpus.public.checksums import CHECKSUMS
from tandem.data.corpus.public.entry import Archive, Form, Part, PublicCorpus, Split, parse_languages
from tandem.errors import TandemError

__all__ = ["Listing", "Source"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A part before its languages are chosen: `{x}` and `{y}` in `urls` and `members` stand for them."""

    name: str
    urls: tuple[str, ...]
    members: tuple[str, ...] = ()
    form: Form = "txt"
    pairs: Mapping[str, int] = field(default_factory=dict)
    """By language pair, as `de-en`; where a pair is absent, its count is not known."""

    def build(self, split: Split, pair: str) -> Part:
        """Fill in a pair of languages, in the order in which the publisher names them."""
        x, y = languages = parse_languages(pair)
        urls = [url.format(x=x, y=y) for url in self.urls]
        return Part(
            name=self.name,
            split=split,
            languages=languages,
            archives=tuple(_build_archive(url) for url in urls),
            members=tuple(member.format(x=x, y=y) for member in self.members),
            form=self.form,
            pairs=self.pairs.get(pair, self.pairs.get(f"{y}-{x}")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A name of the catalogue, and the languages in which it can be had."""

    name: str
    summary: str
    licence: str
    languages: tuple[str, ...]
    """Pairs in the publisher's order, the most wanted first; both orders only where their text differs."""
    sources: tuple[tuple[Split, Source], ...]
    recipe: bool = False
    """Whether it is a well-known training set, put together from several corpora."""

    def find_pair(self, source: str, target: str) -> str | None:
        """Return the publisher's name of a pair of languages, or None where it cannot be had."""
        return next(
            (pair for pair in (f"{source}-{target}", f"{target}-{source}") if pair in self.languages), None
        )

    def build(self, languages: tuple[str, str] | None = None) -> PublicCorpus:
        """Fill in the languages; without them, those of the first pair, with English as the source."""
        source, target = languages or _english_first(self.languages[0])
        pair = self.find_pair(source, target)
        if pair is None:
            known = ", ".join(self.languages)
            raise TandemError(f"{self.name} has no {source}-{target}: choose --languages from {known}.")
        return PublicCorpus(
            name=self.name,
            folder=self.name if pair == self.languages[0] else f"{self.name}-{source}-{target}",
            summary=self.summary,
            licence=self.licence,
            languages=(source, target),
            parts=tuple(part.build(split, pair) for split, part in self.sources),
        )


def _build_archive(url: str) -> Archive:
    size_bytes, sha256 = CHECKSUMS.get(url, (None, None))
    return Archive(url=url, size_bytes=size_bytes, sha256=sha256)


def _english_first(pair: str) -> tuple[str, str]:
    x, y = parse_languages(pair)
    return (y, x) if y == "en" else (x, y)
