"""A public corpus as a folder of aligned text: one file a language and split, with where it came from."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from tandem.artefact import JsonValue, Manifest, building, fingerprint, maybe_fresh
from tandem.data.corpus.public.download import Downloaded, download
from tandem.data.corpus.public.entry import Part, PublicCorpus
from tandem.data.corpus.public.unpack import read_pairs
from tandem.errors import TandemError
from tandem.progress import SILENT, Progress

__all__ = ["Fetched", "fetch_corpus"]

KIND = "public corpus"
VERSION = 1
_BATCH = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A corpus that lies in its folder."""

    folder: Path
    manifest: Manifest
    was_there: bool

    def pairs(self) -> dict[str, int]:
        """Count the pairs of each split."""
        counts: dict[str, int] = {}
        for part in cast(list[dict[str, Any]], self.manifest.facts["parts"]):
            counts[part["split"]] = counts.get(part["split"], 0) + part["pairs"]
        return counts


def fetch_corpus(
    corpus: PublicCorpus,
    folder: Path,
    *,
    cache: Path,
    progress: Progress = SILENT,
    wait: Callable[[float], None] = time.sleep,
) -> Fetched:
    """Download what the cache lacks and write the text to `folder`; nothing where it lies there whole."""
    mark = fingerprint(_identity(corpus))
    manifest = maybe_fresh(folder, kind=KIND, version=VERSION, fingerprint=mark)
    if manifest is not None:
        return Fetched(folder=folder, manifest=manifest, was_there=True)
    archives = {
        archive.url: download(archive, cache, progress=progress, wait=wait) for archive in corpus.archives
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    with building(
        folder, kind=KIND, version=VERSION, fingerprint=mark, progress=progress, links=True
    ) as build:
        counts = _write_text(corpus, archives, build.path, progress)
        facts = _describe(corpus, archives, counts)
        (build.path / "README.md").write_text(_render_readme(corpus, archives, counts), encoding="utf-8")
        build.facts = facts
    manifest = maybe_fresh(folder, kind=KIND, version=VERSION, fingerprint=mark)
    assert manifest is not None
    return Fetched(folder=folder, manifest=manifest, was_there=False)


def _identity(corpus: PublicCorpus) -> JsonValue:
    """Everything that the text depends on."""
    return [
        {
            "split": part.split,
            "languages": part.languages,
            "archives": [[archive.url, archive.sha256] for archive in part.archives],
            "members": part.members,
            "form": part.form,
            "columns": part.columns,
        }
        for part in corpus.parts
    ]


def _write_text(
    corpus: PublicCorpus, archives: Mapping[str, Downloaded], folder: Path, progress: Progress
) -> list[int]:
    """Write each split's files from its parts, one after the other; returns the pairs of each part."""
    with ExitStack() as stack:
        files = {
            (split, language): stack.enter_context((folder / f"{split}.{language}").open("wb"))
            for split in corpus.splits
            for language in corpus.languages
        }
        counts = []
        for part in corpus.parts:
            paths = [archives[archive.url].path for archive in part.archives]
            sides = [files[part.split, language] for language in part.languages]
            counts.append(_write_part(part, paths, sides, progress))
    return counts


def _write_part(part: Part, paths: Sequence[Path], sides: Sequence[BinaryIO], progress: Progress) -> int:
    count = 0
    pairs = read_pairs(part, paths)
    with progress.bar(f"Reading {part.name}", total=part.pairs, unit="pairs") as bar:
        while batch := list(islice(pairs, _BATCH)):
            for file, lines in zip(sides, zip(*batch, strict=True), strict=True):
                file.write(_join(lines))
            count += len(batch)
            bar.advance(len(batch))
    if count == 0:
        raise TandemError(
            f"{part.name} holds no text in {'-'.join(part.languages)}: its publisher has changed it."
        )
    if part.pairs not in {None, count}:
        progress.say(f"note: {part.name} has {count:,} pairs, while the catalogue says {part.pairs:,}")
    return count


def _join(lines: Iterable[str]) -> bytes:
    # A parser may unescape a line end inside a sentence; in the file it would be another line.
    return "".join([line.replace("\n", " ") + "\n" for line in lines]).encode("utf-8", "surrogateescape")


def _describe(
    corpus: PublicCorpus, archives: Mapping[str, Downloaded], counts: Sequence[int]
) -> dict[str, JsonValue]:
    return {
        "name": corpus.name,
        "languages": list(corpus.languages),
        "licence": corpus.licence,
        "archives": [{"url": url, "bytes": got.bytes, "sha256": got.sha256} for url, got in archives.items()],
        "parts": [
            {"name": part.name, "split": part.split, "pairs": pairs}
            for part, pairs in zip(corpus.parts, counts, strict=True)
        ],
    }


def _render_readme(corpus: PublicCorpus, archives: Mapping[str, Downloaded], counts: Sequence[int]) -> str:
    parts = zip(corpus.parts, counts, strict=True)
    return "\n".join(
        [
            f"# {corpus.name}",
            f"{corpus.summary}. Languages: {', '.join(corpus.languages)}. Licence: {corpus.licence}.",
            "",
            "One sentence a line, aligned by line; the parts of a split follow each other in this order.",
            "",
            "| split | part | pairs |",
            "|---|---|---|",
            *(f"| {part.split} | {part.name} | {pairs:,} |" for part, pairs in parts),
            "",
            "| archive | bytes | sha256 |",
            "|---|---|---|",
            *(f"| {url} | {got.bytes:,} | {got.sha256} |" for url, got in archives.items()),
            "",
        ]
    )
