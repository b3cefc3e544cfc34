"""The encode stage: clean text to shards, part by part on all cores, resumable."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tandem.artefact import building, maybe_fresh, read_manifest, write_atomic
from tandem.data.corpus.cleaned import Cleaned, CleanedPart
from tandem.data.corpus.tally import Tally
from tandem.data.shards.index import write_index
from tandem.data.shards.part import ShardFacts, part_name, read_facts, write_shard
from tandem.data.shards.ragged import Ragged
from tandem.data.shards.shardset import SHARDS_KIND, SHARDS_VERSION
from tandem.data.subword.learn import Subword, open_subword
from tandem.data.workers import running_jobs
from tandem.errors import TandemError
from tandem.files import read_json
from tandem.progress import SILENT, Progress

__all__ = ["TextFacts", "encode_corpora", "encode_held_out", "read_text_facts"]

TOO_MANY_PIECES = "over {max_pieces} pieces"


@dataclass(slots=True, kw_only=True)
class TextFacts:
    """What encoding saw, counted, in the order source, target where there are two."""

    pairs: int = 0
    text_bytes: list[int] = field(default_factory=lambda: [0, 0])
    words: list[int] = field(default_factory=lambda: [0, 0])
    unknown: list[int] = field(default_factory=lambda: [0, 0])
    lengths: list[Counter[int]] = field(default_factory=lambda: [Counter(), Counter()])
    """Sentences by number of pieces."""
    tally: Tally = field(default_factory=Tally)
    """Pairs dropped for their number of pieces."""

    def add(self, other: "TextFacts") -> None:
        """Add the facts of the part that follows."""
        self.pairs += other.pairs
        for side in (0, 1):
            self.text_bytes[side] += other.text_bytes[side]
            self.words[side] += other.words[side]
            self.unknown[side] += other.unknown[side]
            self.lengths[side].update(other.lengths[side])
        self.tally.add(other.tally)

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "pairs": self.pairs,
            "text_bytes": self.text_bytes,
            "words": self.words,
            "unknown": self.unknown,
            "lengths": [[list(item) for item in sorted(counts.items())] for counts in self.lengths],
            "tally": self.tally.to_json(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "TextFacts":
        """From what `to_json` gave."""
        lengths = [Counter({int(length): int(count) for length, count in side}) for side in value["lengths"]]
        tally = Tally.from_json(value["tally"])
        return cls(**{**value, "lengths": lengths, "tally": tally})


def encode_corpora(
    folder: Path,
    cleaned: Cleaned,
    subword_folder: Path,
    *,
    corpora: Sequence[str],
    max_pieces: int,
    fingerprint: str,
    workers: int,
    progress: Progress = SILENT,
) -> bool:
    """Encode all clean parts into a shard set in `folder`; returns whether it was there already."""
    if maybe_fresh(folder, kind=SHARDS_KIND, version=SHARDS_VERSION, fingerprint=fingerprint) is not None:
        return True
    with building(
        folder, kind=SHARDS_KIND, version=SHARDS_VERSION, fingerprint=fingerprint, progress=progress
    ) as build:
        job = partial(EncodeJob, build.path, subword_folder, max_pieces)
        text = TextFacts()
        shards: list[ShardFacts] = []
        with (
            progress.bar("encoding", total=cleaned.pairs, unit="pairs") as bar,
            running_jobs(job, enumerate(cleaned.parts), workers=workers) as results,
        ):
            for part, (facts, seen) in zip(cleaned.parts, results, strict=True):
                bar.advance(part.pairs)
                shards.append(facts)
                text.add(seen)
                build.known(facts.name, bytes=facts.bytes, sha256=facts.sha256)
        if text.pairs == 0:
            raise TandemError(
                f"Every pair has more than {max_pieces} pieces on a side: raise subword.max_pieces."
            )
        subword = open_subword(subword_folder)
        index = write_index(
            build.path, shards, corpora=corpora, special=subword.target.special, vocabulary=subword.vocabulary
        )
        build.facts = {**index, "text": text.to_json()}
    return False


class EncodeJob:
    """Encodes parts in a worker; the part's text facts, written last, say that the part is whole."""

    def __init__(self, folder: Path, subword_folder: Path, max_pieces: int) -> None:
        self._folder = folder
        self._subword = open_subword(subword_folder)
        self._max_pieces = max_pieces

    def __call__(self, task: tuple[int, CleanedPart]) -> tuple[ShardFacts, TextFacts]:
        """Encode one part, or read the facts of one that is done."""
        number, part = task
        path = self._folder / part_name(number)
        # The name's end makes the finished folder leave it out: its sum is in the manifest.
        counted = path.with_suffix(".json.tmp")
        if path.exists() and counted.exists():
            return read_facts(path), TextFacts.from_json(read_json(counted))
        shard, text = _encode(path, part.read(), self._subword, self._max_pieces, part.corpus)
        write_atomic(counted, json.dumps(text.to_json(), ensure_ascii=False).encode())
        return shard, text


def encode_held_out(
    folder: Path, pairs: Sequence[tuple[str, str]], subword: Subword, *, name: str, fingerprint: str
) -> None:
    """Encode a held-out set, of any length, into a shard set of one part."""
    if maybe_fresh(folder, kind=SHARDS_KIND, version=SHARDS_VERSION, fingerprint=fingerprint) is None:
        with building(folder, kind=SHARDS_KIND, version=SHARDS_VERSION, fingerprint=fingerprint) as build:
            shard, text = _encode(build.path / part_name(0), pairs, subword, None, 0)
            index = write_index(
                build.path,
                [shard],
                corpora=[name],
                special=subword.target.special,
                vocabulary=subword.vocabulary,
            )
            build.facts = {**index, "text": text.to_json()}


def read_text_facts(folder: Path) -> TextFacts:
    """What was counted when the shard set in `folder` was made."""
    facts: Mapping[str, Any] = read_manifest(
        folder, kind=SHARDS_KIND, version=SHARDS_VERSION, sizes=False
    ).facts
    return TextFacts.from_json(facts["text"])


def _encode(
    path: Path, pairs: Sequence[tuple[str, str]], subword: Subword, max_pieces: int | None, corpus: int
) -> tuple[ShardFacts, TextFacts]:
    text = TextFacts()
    sentences = [[pair[side] for pair in pairs] for side in (0, 1)]
    source, target = subword.source.encode(sentences[0]), subword.target.encode(sentences[1])
    if max_pieces is not None:
        fits = (source.lengths <= max_pieces) & (target.lengths <= max_pieces)
        if not fits.all():
            _count_dropped(text.tally, pairs, fits, max_pieces)
            source, target = _chosen(source, fits), _chosen(target, fits)
            sentences = [[line for line, fit in zip(side, fits, strict=True) if fit] for side in sentences]
    text.pairs = len(source)
    models = subword.source, subword.target
    for side, encoded in enumerate((source, target)):
        text.text_bytes[side] = sum(len(line.encode()) for line in sentences[side]) + len(encoded)
        text.words[side] = sum(map(models[side].count_words, sentences[side]))
        text.unknown[side] = int((encoded.ids == models[side].special.unk).sum())
        lengths, counts = np.unique(encoded.lengths, return_counts=True)
        text.lengths[side].update(dict(zip(lengths.tolist(), counts.tolist(), strict=True)))
    shard = write_shard(path, source=source, target=target, vocabulary=subword.vocabulary, corpus=corpus)
    return shard, text


def _count_dropped(
    tally: Tally, pairs: Sequence[tuple[str, str]], fits: np.ndarray[Any, np.dtype[np.bool_]], max_pieces: int
) -> None:
    for row in np.flatnonzero(~fits).tolist():
        tally.drop(TOO_MANY_PIECES.format(max_pieces=max_pieces), *pairs[row], "clean text")


def _chosen(side: Ragged, rows: np.ndarray[Any, np.dtype[np.bool_]]) -> Ragged:
    return Ragged(ids=side.ids[np.repeat(rows, side.lengths)], lengths=side.lengths[rows])
