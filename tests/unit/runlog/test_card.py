"""The data card and its JSON form."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.errors import TandemError
from tandem.runlog.card import DataCard, read_card, write_card

# No count of a corpus is below 0, and none is more than all the text there is.
st.register_type_strategy(int, st.integers(0, 1 << 53))
st.register_type_strategy(float, st.floats(0, 1 << 53))
CARDS = st.from_type(DataCard)
HELD: dict[str, Any] = {
    "version": 1,
    "languages": {"source": "en", "target": "de"},
    "corpora": [
        {
            "name": "built-in",
            "files": [{"name": "train.en", "bytes": 10, "sha256": "ab"}],
            "lines": 4,
            "kept": 3,
            "weight": 1.0,
        }
    ],
    "raw": {"bytes": 10, "lines": 4},
    "cleaned": {"source_bytes": 4, "target_bytes": 5, "lines": 3},
    "dropped": [
        {"reason": "empty", "count": 1, "examples": [{"origin": "built-in:2", "source": "", "target": "x"}]}
    ],
    "changed": [{"name": "nfc", "count": 2}],
    "words": {"source": 3, "target": 3},
    "tokens": {"source": 8, "target": 9},
    "lengths": {"source": {"edges": [8, 16], "counts": [3, 0]}, "target": {"edges": [8], "counts": [3]}},
    "fertility": {"source": 1.5, "target": 2.0},
    "vocabulary": {"size": 64, "kind": "bpe", "unknown_pieces": 0},
    "stored": {"pairs": 3, "bytes": 128},
    "held_out": [
        {
            "name": "dev",
            "pairs": 1,
            "words": {"source": 1, "target": 1},
            "tokens": {"source": 2, "target": 2},
            "overlap_removed": 0,
            "overlap_checked": True,
        }
    ],
    "batching": {
        "target_tokens": 100,
        "padded_share": 0.03,
        "packed_share": 0.0,
        "updates_per_epoch": 1,
        "pairs_per_update": 3.0,
    },
    "examples": [{"source": "a", "target": "ä", "source_pieces": ["a"], "target_pieces": ["ä"]}],
}


def changed(**other: Any) -> dict[str, Any]:
    return HELD | other


def test_a_card_reads_back_from_its_json() -> None:
    card = DataCard.from_json(HELD)
    assert card.corpora[0].files[0].name == "train.en"
    assert json.loads(json.dumps(card.to_json())) == HELD


@given(CARDS)
def test_every_card_survives_its_json(card: DataCard) -> None:
    assert repr(DataCard.from_json(card.to_json())) == repr(card)


def test_a_card_file_reads_back_and_shows_letters_as_they_are(tmp_path: Path) -> None:
    card = DataCard.from_json(HELD)
    write_card(tmp_path / "card.json", card)
    assert read_card(tmp_path / "card.json") == card
    assert "ä" in (tmp_path / "card.json").read_text(encoding="utf-8")


def test_text_that_is_not_valid_unicode_survives_the_file(tmp_path: Path) -> None:
    card = DataCard.from_json(changed(changed=[{"name": "\udc80", "count": 1}]))
    write_card(tmp_path / "card.json", card)
    assert read_card(tmp_path / "card.json") == card


def test_a_card_of_a_newer_version_is_told_with_a_cure() -> None:
    with pytest.raises(TandemError, match="format 2, but this Tandem reads 1: use a newer Tandem"):
        DataCard.from_json(changed(version=2))


def test_what_a_newer_writer_added_is_passed_over() -> None:
    assert DataCard.from_json(changed(mood="good")) == DataCard.from_json(HELD)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"raw": None}, "card.raw"),
        ({"raw": {"bytes": 1}}, "card.raw.lines"),
        ({"raw": {"bytes": 1.5, "lines": 1}}, "card.raw.bytes"),
        ({"changed": [{"name": "nfc", "count": 1}, {"name": 3, "count": 1}]}, "card.changed.1.name"),
        ({"examples": "abc"}, "card.examples"),
        ({"fertility": {"source": True, "target": 1}}, "card.fertility.source"),
    ],
)
def test_a_damaged_card_is_told_with_the_place(change: dict[str, Any], place: str) -> None:
    with pytest.raises(TandemError, match=f"damaged at {place}: prepare the data again"):
        DataCard.from_json(changed(**change))


def test_a_missing_file_and_a_torn_one_are_told(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="There is no data card"):
        read_card(tmp_path / "card.json")
    (tmp_path / "card.json").write_text('{"version": 1, "langu')
    with pytest.raises(TandemError, match="damaged"):
        read_card(tmp_path / "card.json")
    (tmp_path / "card.json").write_text("[]")
    with pytest.raises(TandemError, match="damaged"):
        read_card(tmp_path / "card.json")
