"""The data card of a simulated run."""

from benchmarks.truth.world.world import World

from tandem.runlog.card import (
    Batching,
    Cleaned,
    Corpus,
    CorpusFile,
    DataCard,
    Dropped,
    HeldOut,
    Histogram,
    Languages,
    Raw,
    SideCounts,
    SideHistograms,
    SideRates,
    Stored,
    Vocabulary,
)

__all__ = ["build_card"]


def build_card(world: World) -> DataCard:
    """A card whose numbers fit together."""
    training, model = world.training, world.model
    pairs = training.pairs
    raw, words = pairs + pairs // 20 + 3, pairs * 20
    tokens = words * 13 // 10
    source, target = (
        CorpusFile(name=f"train.{side}", bytes=raw * 110, sha256="0" * 64) for side in ("en", "de")
    )
    lengths = Histogram(edges=(10, 30, 100), counts=(pairs // 4, pairs // 2, pairs - pairs // 4 - pairs // 2))
    return DataCard(
        languages=Languages(source="en", target="de"),
        corpora=(Corpus(name="train", files=(source, target), lines=raw, kept=pairs, weight=1.0),),
        raw=Raw(bytes=2 * raw * 110, lines=raw),
        cleaned=Cleaned(source_bytes=pairs * 108, target_bytes=pairs * 110, lines=pairs),
        dropped=(Dropped(reason="too long", count=raw - pairs, examples=()),),
        changed=(),
        words=SideCounts(source=words, target=words),
        tokens=SideCounts(source=tokens, target=tokens),
        lengths=SideHistograms(source=lengths, target=lengths),
        fertility=SideRates(source=1.3, target=1.3),
        vocabulary=Vocabulary(size=model.vocabulary, kind="unigram", unknown_pieces=0),
        stored=Stored(pairs=pairs, bytes=tokens * 4),
        held_out=(
            HeldOut(
                name="valid",
                pairs=world.evidence.valid_tokens // 27,
                words=SideCounts(source=1000, target=1000),
                tokens=SideCounts(source=1300, target=1300),
                overlap_removed=2,
                overlap_checked=True,
            ),
        ),
        batching=Batching(
            target_tokens=model.tokens_per_update,
            padded_share=0.031,
            packed_share=0.004,
            updates_per_epoch=training.updates_per_epoch,
            pairs_per_update=pairs / training.updates_per_epoch,
        ),
        examples=(),
    )
