from dataclasses import replace

from tandem.observe.data_card import headline
from tandem.observe.data_card.answers import lengths_note, mended, sizes
from tandem.runlog.card import DataCard, Histogram, SideHistograms


def test_the_headline_tells_apart_the_four_numbers_that_people_confuse(card: DataCard) -> None:
    assert headline(card) == (
        "4,509,785 sentence pairs: 891.6 MB of raw files, 1,318.1 MB of clean text, 273.3 million tokens, "
        "560.8 MB of shards on disk."
    )


def test_each_size_says_what_it_counts(card: DataCard) -> None:
    shown = {size.name: (size.value, size.meaning) for size in sizes(card)}
    assert shown["raw files"] == ("891.6 MB", "5 files, 3 compressed; 4,577,597 pairs uncleaned")
    assert shown["clean text"] == ("1,318.1 MB", "UTF-8: 617.3 MB en + 700.8 MB de")
    assert shown["tokens"] == ("273,273,211", "with end marks: 134.9 million en + 138.4 million de")
    assert shown["shards"] == ("560.8 MB", "4,509,785 pairs as ids on disk: what training reads")


def test_one_file_is_not_files(card: DataCard) -> None:
    plain = replace(card.corpora[0], files=card.corpora[0].files[:1])
    assert sizes(replace(card, corpora=(plain,)))[0].meaning == "1 file; 4,577,597 pairs uncleaned"


def test_what_was_mended_is_listed(card: DataCard) -> None:
    assert "Unicode composed (NFC) in 40,113" in mended(card)
    assert mended(replace(card, changed=())) == "Mended: nothing."


def test_a_plot_that_leaves_sentences_out_says_so(card: DataCard) -> None:
    assert lengths_note(card) == ("Longer and not shown: 0.4 % of en, 0.4 % of de; none has over 256 pieces.")


def test_a_plot_that_shows_everything_says_nothing(card: DataCard) -> None:
    both = Histogram(edges=(10, 20), counts=(5, 5))
    assert lengths_note(replace(card, lengths=SideHistograms(source=both, target=both))) == ""
