"""A card with the numbers of a WMT-sized corpus and invented sentences."""

from dataclasses import replace
from pathlib import Path

import pytest

from tandem.runlog.card import (
    Batching,
    Cleaned,
    DataCard,
    Histogram,
    Raw,
    SideCounts,
    SideHistograms,
    SideRates,
    Stored,
    read_card,
)


@pytest.fixture(scope="session")
def card() -> DataCard:
    return read_card(Path(__file__).with_name("card.json"))


@pytest.fixture(scope="session")
def empty_card(card: DataCard) -> DataCard:
    """A card of nothing: what must never divide by zero."""
    nothing = Histogram(edges=(), counts=())
    none = SideCounts(source=0, target=0)
    return replace(
        card,
        corpora=(),
        raw=Raw(bytes=0, lines=0),
        cleaned=Cleaned(source_bytes=0, target_bytes=0, lines=0),
        dropped=(),
        changed=(),
        words=none,
        tokens=none,
        lengths=SideHistograms(source=nothing, target=nothing),
        fertility=SideRates(source=0.0, target=0.0),
        stored=Stored(pairs=0, bytes=0),
        held_out=(),
        batching=Batching(
            target_tokens=0, padded_share=0.0, packed_share=0.0, updates_per_epoch=0, pairs_per_update=0.0
        ),
        examples=(),
    )
