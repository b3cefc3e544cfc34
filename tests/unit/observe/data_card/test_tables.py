from dataclasses import replace

from tandem.observe.data_card import tables
from tandem.runlog.card import Cleaned, DataCard


def test_a_corpus_shows_what_cleaning_kept_and_its_weight(card: DataCard) -> None:
    table = tables.corpora_table(card)
    assert table.rows[2] == ("news-commentary-v9", "14.1 MB", "258,265", "255,682", "99.0 %", "2.5")
    assert table.rows[3] == ("all", "891.6 MB", "4,577,597", "4,509,792", "98.5 %", "")


def test_one_corpus_needs_no_total(card: DataCard) -> None:
    assert len(tables.corpora_table(replace(card, corpora=card.corpora[:1])).rows) == 1


def test_pairs_that_went_after_cleaning_are_accounted_for(card: DataCard) -> None:
    assert tables.corpora_table(card).note == "Encoding then dropped 7 more; 4,509,785 are left."
    kept = sum(corpus.kept for corpus in card.corpora)
    whole = replace(card, cleaned=Cleaned(source_bytes=1, target_bytes=1, lines=kept))
    assert tables.corpora_table(whole).note == ""


def test_reasons_are_shares_of_what_was_read(card: DataCard) -> None:
    table = tables.dropped_table(card)
    assert table.title == "Dropped: 67,812 of 4,577,597 pairs (1.5 %)"
    assert table.rows[0] == ("exact duplicate", "31,204", "0.7 %")
    assert table.rows[-1] == ("over 250 pieces", "7", "< 0.1 %")


def test_sides_show_words_tokens_and_how_words_are_split(card: DataCard) -> None:
    table = tables.sides_table(card)
    assert table.rows[0] == ("en (source)", "617.3 MB", "113,871,204", "134,870,221", "1.14", "29.9")
    assert table.note == "Vocabulary of 32,768 (bpe); 0 unknown pieces in the text."


def test_held_out_sets_show_the_overlap_that_was_removed(card: DataCard) -> None:
    assert tables.held_out_table(card).rows[1] == ("test", "3,003", "82,904", "85,511", "96")


def test_no_held_out_set_is_said(empty_card: DataCard) -> None:
    assert tables.held_out_table(empty_card).note == "No set is held out."


def test_an_update_shows_padding_in_both_layouts(card: DataCard) -> None:
    assert tables.batching_table(card).rows == (("25,000", "814.6", "5,537", "3.1 %", "0.4 %"),)


def test_every_raw_file_is_listed_with_its_checksum(card: DataCard) -> None:
    rows = tables.files_table(card).rows
    assert len(rows) == 5
    assert rows[0] == ("europarl-v7", "europarl-v7.de-en.en", "3" * 64, "301.2 MB")


def test_every_row_is_as_long_as_its_headings(card: DataCard) -> None:
    for build in (
        tables.corpora_table,
        tables.files_table,
        tables.dropped_table,
        tables.sides_table,
        tables.held_out_table,
        tables.batching_table,
    ):
        table = build(card)
        assert {len(row) for row in table.rows} == {len(table.columns)}
