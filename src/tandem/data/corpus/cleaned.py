"""The clean stage: every corpus of the recipe as parts of clean pairs, resumable part by part."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from tandem.artefact import Build, JsonValue, Manifest, building, maybe_fresh, read_manifest, write_atomic
from tandem.config import CleanSection
from tandem.data.corpus.clean import Cleaner
from tandem.data.corpus.duplicates import find_duplicates
from tandem.data.corpus.files import CorpusFiles
from tandem.data.corpus.filters import HeldOutSentences
from tandem.data.corpus.read import RawChunk, read_chunks
from tandem.data.corpus.tally import Tally
from tandem.data.workers import running_jobs
from tandem.errors import TandemError
from tandem.files import read_bounded, read_json
from tandem.progress import SILENT, Progress

__all__ = ["CleanRules", "Cleaned", "CleanedPart", "clean_corpora", "open_cleaned"]

KIND = "clean pairs"
VERSION = 2
DUPLICATE = "exact duplicate"


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanRules:
    """All that decides which pairs stay."""

    clean: CleanSection
    held_out: Mapping[str, HeldOutSentences]
    languages: tuple[str, str]
    segmented: bool
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedPart:
    """One part on disk."""

    folder: Path
    name: str
    corpus: int
    pairs: int
    """Without the duplicates."""
    has_duplicates: bool

    def read(self) -> list[tuple[str, str]]:
        """The part's pairs, duplicates left out."""
        lines = _read_lines(self.folder, self.name)
        if self.has_duplicates:
            keep = np.ones(len(lines), dtype=bool)
            keep[np.fromfile(self.folder / f"{self.name}.dup", dtype="<u4")] = False
            lines = [line for line, kept in zip(lines, keep, strict=True) if kept]
        return [_sides(line) for line in lines]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """The finished stage."""

    fingerprint: str
    parts: Sequence[CleanedPart]
    tallies: Mapping[str, Tally]
    """By name of corpus."""

    @property
    def pairs(self) -> int:
        """Clean pairs of all corpora."""
        return sum(part.pairs for part in self.parts)


def open_cleaned(folder: Path) -> Cleaned:
    """Open a finished clean stage."""
    return _opened(folder, read_manifest(folder, kind=KIND, version=VERSION, sizes=False))


def clean_corpora(
    folder: Path,
    corpora: Sequence[CorpusFiles],
    rules: CleanRules,
    *,
    fingerprint: str,
    workers: int,
    progress: Progress = SILENT,
) -> tuple[Cleaned, bool]:
    """Clean all corpora into `folder`, unless it holds them already; also says whether it did."""
    fresh = maybe_fresh(folder, kind=KIND, version=VERSION, fingerprint=fingerprint)
    if fresh is not None:
        return _opened(folder, fresh), True
    with building(folder, kind=KIND, version=VERSION, fingerprint=fingerprint, progress=progress) as build:
        tallies = {}
        for number, files in enumerate(corpora):
            job = partial(CleanJob, build.path, rules, files.name)
            tasks = _tasks(build.path, number, files, rules.seed)
            with running_jobs(job, tasks, workers=workers) as parts:
                tallies[files.name] = _clean_corpus(files, parts, progress)
        _drop_duplicates(build.path, tallies, rules.clean, progress)
        _finish(build, tallies)
    return open_cleaned(folder), False


def _clean_corpus(files: CorpusFiles, parts: Iterator[Tally], progress: Progress) -> Tally:
    tally = Tally()
    total = files.corpus.builtin.pairs if files.corpus.builtin is not None else None
    with progress.bar(f"cleaning {files.name}", total=total, unit="pairs") as bar:
        for part in parts:
            bar.advance(part.lines)
            tally.add(part)
    if tally.kept == 0:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in tally.dropped.most_common())
        raise TandemError(
            f"Cleaning left none of the {tally.lines:,} pairs of corpus {files.name} ({reasons}): check its files and "
            f"languages, or loosen the recipe's clean section."
        )
    return tally


def _tasks(folder: Path, number: int, files: CorpusFiles, seed: int) -> Iterator[tuple[str, RawChunk | None]]:
    """Name and text of each part; no text where the part is finished already."""
    for index, chunk in enumerate(read_chunks(files, seed=seed)):
        name = f"{number:04d}-{index:07d}"
        done = all((folder / f"{name}.{ending}").exists() for ending in ("tsv.zst", "keys.tmp", "json"))
        yield name, None if done else chunk


class CleanJob:
    """Cleans chunks in a worker; the part's tally, written last, says that the part is whole."""

    def __init__(self, folder: Path, rules: CleanRules, corpus: str) -> None:
        self._folder = folder
        self._corpus = corpus
        self._cleaner = Cleaner(
            rules.clean, rules.held_out, languages=rules.languages, segmented=rules.segmented
        )

    def __call__(self, task: tuple[str, RawChunk | None]) -> Tally:
        """Clean one chunk, or read the tally of one that is done."""
        name, chunk = task
        if chunk is None:
            return _read_tally(self._folder, name)
        cleaned = self._cleaner.clean(chunk, self._corpus)
        write_atomic(
            self._folder / f"{name}.tsv.zst", zstandard.ZstdCompressor(level=1).compress(cleaned.text)
        )
        write_atomic(self._folder / f"{name}.keys.tmp", cleaned.keys)
        tally = json.dumps(cleaned.tally.to_json(), ensure_ascii=False, sort_keys=True)
        write_atomic(self._folder / f"{name}.json", tally.encode())
        return cleaned.tally


def _drop_duplicates(
    folder: Path, tallies: Mapping[str, Tally], rules: CleanSection, progress: Progress
) -> None:
    names = _part_names(folder)
    if not rules.drop_duplicates:
        return
    corpora = list(tallies)
    for index, rows in find_duplicates([folder / f"{name}.keys.tmp" for name in names], progress):
        name = names[index]
        write_atomic(folder / f"{name}.dup", rows.astype("<u4").tobytes())
        corpus = corpora[_corpus_of(name)]
        _count_duplicates(tallies[corpus], folder, name, rows.tolist(), corpus)


def _count_duplicates(tally: Tally, folder: Path, name: str, rows: list[int], corpus: str) -> None:
    shown = tally.dropped[DUPLICATE] < 1
    lines = _read_lines(folder, name) if shown else []
    for row in rows[:3] if shown else []:
        tally.drop(DUPLICATE, *_sides(lines[row]), f"{corpus}:part {name} row {row + 1}")
    tally.dropped[DUPLICATE] += len(rows) - len(rows[:3]) * shown
    tally.kept -= len(rows)


def _finish(build: Build, tallies: Mapping[str, Tally]) -> None:
    parts: list[JsonValue] = []
    for name in _part_names(build.path):
        duplicates = build.path / f"{name}.dup"
        count = duplicates.stat().st_size // 4 if duplicates.exists() else 0
        parts.append([name, _read_tally(build.path, name).kept - count, count])
    build.facts = {"parts": parts, "tallies": {name: tally.to_json() for name, tally in tallies.items()}}


def _opened(folder: Path, manifest: Manifest) -> Cleaned:
    facts: Mapping[str, Any] = manifest.facts
    parts = [
        CleanedPart(
            folder=folder, name=name, corpus=_corpus_of(name), pairs=pairs, has_duplicates=duplicates > 0
        )
        for name, pairs, duplicates in facts["parts"]
    ]
    tallies = {name: Tally.from_json(tally) for name, tally in facts["tallies"].items()}
    return Cleaned(fingerprint=manifest.fingerprint, parts=parts, tallies=tallies)


def _part_names(folder: Path) -> list[str]:
    return sorted(path.name.removesuffix(".tsv.zst") for path in folder.glob("*.tsv.zst"))


def _corpus_of(name: str) -> int:
    return int(name.partition("-")[0])


def _read_tally(folder: Path, name: str) -> Tally:
    return Tally.from_json(read_json(folder / f"{name}.json"))


def _read_lines(folder: Path, name: str) -> list[str]:
    text = zstandard.ZstdDecompressor().decompress(read_bounded(folder / f"{name}.tsv.zst"))
    lines = text.decode().split("\n")
    lines.pop()
    return lines


def _sides(line: str) -> tuple[str, str]:
    source, _, target = line.partition("\t")
    return source, target
