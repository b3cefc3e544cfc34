"""Measuring the data card: what the prepared data holds, from the counts that the stages left behind."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tandem.artefact import read_manifest
from tandem.data.batches.waste import padding_share
from tandem.data.corpus.cleaned import Cleaned
from tandem.data.corpus.files import CorpusFiles
from tandem.data.corpus.filters import overlap_reason
from tandem.data.corpus.tally import Tally
from tandem.data.encode import TextFacts, read_text_facts
from tandem.data.prepared import Prepared
from tandem.data.shards.shardset import SHARDS_KIND, SHARDS_VERSION, ShardSet
from tandem.data.subword.learn import Subword
from tandem.runlog import card as facts

__all__ = ["CAPACITY_TOKENS", "measure_card"]

BUCKETS = 128
EXAMPLES = 5
CAPACITY_TOKENS = 4096
"""Places a side of one batch, for measuring padding: what a small GPU or a CPU takes at once."""


def measure_card(
    prepared: Prepared, corpora: Sequence[CorpusFiles], sums: Mapping[Path, str]
) -> facts.DataCard:
    """Build the data card of a finished preparation; reads counts, and a few pairs to show."""
    data = prepared.recipe.data
    cleaned, shards, subword = prepared.cleaned(), prepared.train(), prepared.subword()
    text = read_text_facts(prepared.train_folder)
    tally = _total(cleaned, text)
    files = [path for corpus in corpora for path in corpus.paths]
    return facts.DataCard(
        languages=facts.Languages(source=data.source_language, target=data.target_language),
        corpora=tuple(_corpus(corpus, cleaned.tallies[corpus.name], sums) for corpus in corpora),
        raw=facts.Raw(bytes=sum(path.stat().st_size for path in files), lines=tally.lines),
        cleaned=facts.Cleaned(
            source_bytes=text.text_bytes[0], target_bytes=text.text_bytes[1], lines=text.pairs
        ),
        dropped=_dropped(tally),
        changed=tuple(facts.Changed(name=name, count=count) for name, count in tally.mended.most_common()),
        words=facts.SideCounts(source=text.words[0], target=text.words[1]),
        tokens=_tokens(shards),
        lengths=facts.SideHistograms(source=_histogram(text.lengths[0]), target=_histogram(text.lengths[1])),
        fertility=facts.SideRates(source=_fertility(text, 0), target=_fertility(text, 1)),
        vocabulary=facts.Vocabulary(
            size=subword.vocabulary, kind=_kind(prepared), unknown_pieces=sum(text.unknown)
        ),
        stored=facts.Stored(pairs=len(shards), bytes=_stored_bytes(prepared.train_folder)),
        held_out=tuple(_held_out(prepared, name, tally) for name in prepared.held_out_names),
        batching=_batching(prepared, shards),
        examples=_examples(shards, subword),
    )


def _kind(prepared: Prepared) -> str:
    subword = prepared.recipe.subword
    return subword.kind if subword.model is None else "your own model"


def _total(cleaned: Cleaned, text: TextFacts) -> Tally:
    total = Tally()
    for tally in (*cleaned.tallies.values(), text.tally):
        total.add(tally)
    return total


def _corpus(corpus: CorpusFiles, tally: Tally, sums: Mapping[Path, str]) -> facts.Corpus:
    files = tuple(
        facts.CorpusFile(name=path.name, bytes=path.stat().st_size, sha256=sums[path])
        for path in corpus.paths
    )
    return facts.Corpus(
        name=corpus.name, files=files, lines=tally.lines, kept=tally.kept, weight=corpus.corpus.weight
    )


def _dropped(tally: Tally) -> tuple[facts.Dropped, ...]:
    return tuple(
        facts.Dropped(
            reason=reason,
            count=count,
            examples=tuple(
                facts.DroppedPair(origin=pair.origin, source=pair.source, target=pair.target)
                for pair in tally.examples.get(reason, [])
            ),
        )
        for reason, count in tally.dropped.most_common()
    )


def _tokens(shards: ShardSet) -> facts.SideCounts:
    source, target = shards.blocks.source_tokens, shards.blocks.target_tokens
    return facts.SideCounts(source=int(source.sum(dtype=np.int64)), target=int(target.sum(dtype=np.int64)))


def _histogram(lengths: Counter[int]) -> facts.Histogram:
    width = max(1, -(-max(lengths, default=1) // BUCKETS))
    counts: Counter[int] = Counter()
    for length, count in lengths.items():
        counts[max(0, length - 1) // width] += count
    buckets = range(max(counts, default=0) + 1)
    return facts.Histogram(
        edges=tuple((bucket + 1) * width for bucket in buckets),
        counts=tuple(counts[bucket] for bucket in buckets),
    )


def _fertility(text: TextFacts, side: int) -> float:
    pieces = sum(length * count for length, count in text.lengths[side].items())
    return pieces / max(1, text.words[side])


def _stored_bytes(folder: Path) -> int:
    manifest = read_manifest(folder, kind=SHARDS_KIND, version=SHARDS_VERSION, sizes=False)
    return sum(entry.bytes for name, entry in manifest.files.items() if name.endswith((".bin", ".npy")))


def _held_out(prepared: Prepared, name: str, tally: Tally) -> facts.HeldOut:
    text = read_text_facts(prepared.held_out_folder(name))
    return facts.HeldOut(
        name=name,
        pairs=text.pairs,
        words=facts.SideCounts(source=text.words[0], target=text.words[1]),
        tokens=_tokens(prepared.held_out(name)),
        overlap_removed=tally.dropped[overlap_reason(name)],
        overlap_checked=prepared.recipe.clean.drop_held_out_overlap,
    )


def _batching(prepared: Prepared, shards: ShardSet) -> facts.Batching:
    plan = prepared.plan()
    capacity = max(CAPACITY_TOKENS, shards.longest_source, shards.longest_target)
    share = padding_share(plan, capacity_tokens=capacity)
    return facts.Batching(
        target_tokens=plan.target_tokens,
        padded_share=share.padded,
        packed_share=share.packed,
        updates_per_epoch=plan.updates(0),
        pairs_per_update=share.mean_pairs,
    )


def _examples(shards: ShardSet, subword: Subword) -> tuple[facts.EncodedPair, ...]:
    chosen = np.unique(np.linspace(0, len(shards) - 1, EXAMPLES).astype(np.int64))
    source, target = shards.gather(chosen)
    starts = np.cumsum(source.lengths)[:-1], np.cumsum(target.lengths)[:-1]
    rows = zip(np.split(source.ids, starts[0]), np.split(target.ids, starts[1]), strict=True)
    return tuple(
        facts.EncodedPair(
            source=subword.source.decode(left.tolist()),
            target=subword.target.decode(right.tolist()),
            source_pieces=tuple(subword.source.spell(left.tolist())),
            target_pieces=tuple(subword.target.spell(right.tolist())),
        )
        for left, right in rows
    )
