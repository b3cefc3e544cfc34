from tandem.observe.pieces import words_of


def test_sentencepiece_pieces_are_grouped_by_the_mark_that_begins_a_word() -> None:
    assert words_of(["▁Hafen", "meister", "▁ruft", "."]) == [["Hafen", "meister"], ["ruft", "."]]


def test_a_mark_on_its_own_is_still_seen() -> None:
    assert words_of(["▁", "<0xE2>", "▁a"]) == [["▁", "<0xE2>"], ["a"]]


def test_a_first_piece_without_a_mark_begins_a_word() -> None:
    assert words_of(["Ha", "fen", "▁ruft"]) == [["Ha", "fen"], ["ruft"]]


def test_segmented_text_is_grouped_by_the_mark_that_goes_on() -> None:
    assert words_of(["Hafen@@", "meister", "ruft", "."]) == [["Hafen", "meister"], ["ruft"], ["."]]


def test_a_last_piece_that_goes_on_and_a_lone_mark_are_shown() -> None:
    assert words_of(["a", "Haf@@"]) == [["a"], ["Haf"]]
    assert words_of(["a", "@@", "b"]) == [["a"], ["@@"], ["b"]]


def test_no_pieces_are_no_words() -> None:
    assert words_of([]) == []
