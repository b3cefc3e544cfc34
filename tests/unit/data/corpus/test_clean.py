from hypothesis import given
from hypothesis import strategies as st

from tandem.config import CleanSection
from tandem.data.corpus.clean import KEY_BYTES, CleanChunk, Cleaner
from tandem.data.corpus.read import RawChunk
from tandem.data.corpus.stream import MAX_LINE_BYTES


def cleaner(*, segmented: bool = False) -> Cleaner:
    return Cleaner(CleanSection(), {}, languages=("en", "de"), segmented=segmented)


def clean(source: bytes, target: bytes | None, *, segmented: bool = False) -> CleanChunk:
    chunk = RawChunk(first_line=101, lines=source.count(b"\n"), source=source, target=target)
    return cleaner(segmented=segmented).clean(chunk, "news")


def test_clean_pairs_are_tab_separated_lines_with_a_hash_each() -> None:
    result = clean(b"One cat.\nTwo  cats. \r\n", b"Eine Katze.\n\tZwei Katzen.\r\n")
    assert result.text.decode() == "One cat.\tEine Katze.\nTwo cats.\tZwei Katzen.\n"
    assert len(result.keys) == 2 * KEY_BYTES
    assert (result.tally.lines, result.tally.kept) == (2, 2)


def test_invalid_utf8_is_dropped_counted_and_shown() -> None:
    result = clean(b"good one\nbad \xff\xfe line\nCaf\xe9 noir\n", b"gut eins\nschlecht\nSchwarz\n")
    assert result.text == b"good one\tgut eins\n"
    assert result.tally.dropped == {"not UTF-8": 2}
    assert result.tally.examples["not UTF-8"][0].origin == "news:102"
    assert "bad" in result.tally.examples["not UTF-8"][0].source


def test_overlong_lines_are_dropped_and_counted() -> None:
    result = clean(b"x" * MAX_LINE_BYTES + b"\none\n", b"kurz\neins\n")
    assert result.tally.dropped == {"line over 64 kB": 1}
    assert len(result.tally.examples["line over 64 kB"][0].source) == 200


def test_nul_and_unicode_line_ends_inside_a_sentence_are_mended() -> None:
    result = clean("a\x00b c\u2028d e\u0085f\n".encode(), b"eins zwei\n")
    assert result.text.decode() == "ab c d e f\teins zwei\n"
    assert result.tally.mended == {"control characters removed": 1}


def test_tab_separated_input_takes_two_columns_and_counts_lines_without() -> None:
    result = clean(b"one\teins\tcc-by\nno tab here\ntwo\tzwei\n", None)
    assert result.text == b"one\teins\ntwo\tzwei\n"
    assert result.tally.dropped == {"no tab between the sides": 1}


def test_a_tsv_line_that_was_cut_is_dropped_as_too_long_wherever_its_tab_stands() -> None:
    line = b"short\t" + b"x" * MAX_LINE_BYTES
    assert clean(line[:MAX_LINE_BYTES] + b"\n", None).tally.dropped == {"line over 64 kB": 1}


def test_words_of_segmented_text_are_counted_joined() -> None:
    pieces = " ".join(["un@@ believ@@ able"] * 60).encode() + b"\n"
    assert clean(pieces, pieces[:-1] + b" Wort\n", segmented=True).tally.kept == 1
    assert clean(pieces, pieces[:-1] + b" Wort\n").tally.dropped == {"not 1–80 words": 1}


@given(st.lists(st.tuples(st.binary(max_size=60), st.binary(max_size=60)), max_size=20))
def test_no_bytes_break_cleaning_and_every_line_is_accounted_for(pairs: list[tuple[bytes, bytes]]) -> None:
    sides = [
        b"".join(side.replace(b"\n", b"") + b"\n" for side in column) for column in zip(*pairs, strict=True)
    ]
    source, target = sides or (b"", b"")
    result = clean(source, target)
    assert result.tally.lines == len(pairs) == result.tally.kept + result.tally.dropped.total()
    lines = result.text.decode().split("\n")[:-1]
    assert len(lines) == result.tally.kept
    assert all(line.count("\t") == 1 for line in lines)
