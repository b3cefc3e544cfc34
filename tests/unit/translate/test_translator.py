"""Text to text: any number of lines of any length, in order."""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.translate.small_model import SENTENCES, build_translator

from tandem.data.shards.ragged import Ragged
from tandem.data.subword.learn import Subword
from tandem.data.subword.model import SegmentedModel
from tandem.errors import TandemError
from tandem.model import Transformer
from tandem.translate.engine import Found, Sentence
from tandem.translate.penalty import LengthPenalty
from tandem.translate.translator import Translation, Translator, most_target_pieces
from tandem.translate.wish import Sampling, Wish

LINES = ["a", *SENTENCES[:2], "", f"{SENTENCES[2]} {SENTENCES[3]}"]
GREEDY = Wish(beam=1)


def texts(translations: list[Translation]) -> list[str]:
    return [translation.text for translation in translations]


class Echo:
    """Says what it hears, each piece with a log-probability of minus one."""

    name = "echo"

    def __init__(self) -> None:
        self.heard: list[Sentence] = []

    def search(self, sentences: Sequence[Sentence], wish: Wish) -> list[list[Found]]:
        self.heard += sentences
        return [
            [self._found(each.source[: len(each.source) - rank], wish) for rank in range(wish.best)]
            for each in sentences
        ]

    def _found(self, ids: tuple[int, ...], wish: Wish) -> Found:
        total = -float(len(ids) + 1)
        return Found(
            ids=ids,
            score=total if wish.sampling else total / wish.penalty.at(len(ids) + 1),
            token_scores=(-1.0,) * (len(ids) + 1) if wish.token_scores else (),
            alignment=tuple(range(len(ids))) if wish.alignment else (),
        )


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def echoing(echo: Echo, subword: Subword) -> Translator:
    return Translator(echo, subword, most_pieces=20)


@pytest.mark.parametrize("beam", [1, 4])
def test_lines_keep_their_order_and_translation_however_they_are_batched(
    model: Transformer, subword: Subword, beam: int
) -> None:
    alone, some, all_together = (
        build_translator(model, subword, wish=Wish(beam=beam), batch_tokens=tokens)
        for tokens in (1, 60, 10_000)
    )
    expected = texts(alone.translate(LINES))
    assert len(set(expected)) == len(LINES)
    assert texts(some.translate(LINES)) == expected
    assert texts(all_together.translate(LINES[::-1])) == expected[::-1]


def test_the_next_best_are_at_hand(model: Transformer, subword: Subword) -> None:
    translator = build_translator(model, subword)
    (found,) = translator.translate([SENTENCES[0]], Wish(beam=4, best=3))
    assert len(found.others) == 2
    assert found.score >= found.others[0].score >= found.others[1].score
    (alone,) = translator.translate([SENTENCES[0]])
    assert (alone.text, alone.score, alone.pieces) == (found.text, found.score, found.pieces)
    assert alone.others == ()


def test_chunks_of_lines_are_told_in_turn(echoing: Translator) -> None:
    told = list(echoing.stream([(LINES[:2], None), ([], None), (LINES[2:], [""] * 3)]))
    assert [texts(each) for each in told] == [
        texts(echoing.translate(LINES[:2])),
        [],
        texts(echoing.translate(LINES[2:])),
    ]


class Ahead(Echo):
    """Takes all that there is before it says anything."""

    def stream(self, chunks: Iterable[Sequence[Sentence]], wish: Wish) -> Iterator[list[list[Found]]]:
        yield from [self.search(chunk, wish) for chunk in chunks]


def test_where_a_chunk_is_refused_those_before_it_are_told(subword: Subword) -> None:
    stream = Translator(Ahead(), subword).stream([(["a"], None), (["b"], ["too", "many"]), (["c"], None)])
    assert texts(next(stream)) == ["a"]
    with pytest.raises(TandemError, match="2 prefixes for 1 lines"):
        next(stream)


def test_empty_lines_stay_empty_and_no_line_gives_nothing(echoing: Translator, echo: Echo) -> None:
    assert echoing.translate(["", " "], prefixes=["", "a"]) == [Translation(text="", score=0.0, pieces=0)] * 2
    assert echoing.translate([]) == []
    assert echo.heard == []


def test_encoded_sentences_are_translated_like_their_text_and_never_split(
    echo: Echo, subword: Subword
) -> None:
    echoing = Translator(echo, subword, most_pieces=90, sentences=False)
    wish = Wish(alignment=True)
    assert echoing.translate_ids(subword.source.encode(LINES), wish) == echoing.translate(LINES, wish)
    (found,) = echoing.translate_ids(Ragged(ids=np.full(100, 300), lengths=np.array([100])))
    assert found.pieces == 100
    assert echoing.translate_ids(Ragged(ids=np.array([], int), lengths=np.array([], int))) == []


def test_a_long_line_is_split_into_sentences_and_joined_again(echoing: Translator, echo: Echo) -> None:
    line = " ".join(SENTENCES[:6])
    (found,) = echoing.translate([line])
    assert found.text == line
    assert len(echo.heard) >= 6
    assert all(len(sentence.source) <= 20 for sentence in echo.heard)


def test_a_line_within_the_limit_is_not_split_where_whole_lines_are_wished(
    echo: Echo, subword: Subword
) -> None:
    Translator(echo, subword, most_pieces=20, sentences=False).translate(["a. B. a. B."])
    assert len(echo.heard) == 1


def test_each_sentence_of_a_line_is_translated_for_itself_unless_whole_lines_are_wished(
    model: Transformer, subword: Subword
) -> None:
    whole = build_translator(model, subword, sentences=False)
    apart = build_translator(model, subword)
    line = " ".join(SENTENCES[:3])
    (found,) = apart.translate([line])
    assert found.text == " ".join(texts(whole.translate(SENTENCES[:3])))
    assert found.text != whole.translate([line])[0].text


@pytest.mark.parametrize(
    "line",
    ["", "  ", SENTENCES[0], f" {SENTENCES[0]}  ", "no end", "Dr. Miller met J. Smith at 3 p.m. today."],
)
def test_a_line_of_one_sentence_is_translated_as_ever(
    model: Transformer, subword: Subword, line: str
) -> None:
    whole, apart = (build_translator(model, subword, sentences=each) for each in (False, True))
    wish = Wish(beam=3, best=2, token_scores=True, alignment=True)
    assert apart.translate([line], wish) == whole.translate([line], wish)


def test_sentences_of_a_short_line_are_told_as_those_of_a_long_one(subword: Subword) -> None:
    line = "  " + "   ".join(SENTENCES[:3])
    long, short = Echo(), Echo()
    wish = Wish(best=2, token_scores=True, alignment=True)
    expected = Translator(long, subword, most_pieces=60).translate([line], wish, prefixes=["the cat"])
    found = Translator(short, subword).translate([line], wish, prefixes=["the cat"])
    assert found == expected
    assert short.heard == long.heard
    assert len(short.heard) == 3


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=st.text(st.sampled_from("ab .,!?\n\t\x00\u2028漢。\U0001f600") | st.characters(), max_size=60))
def test_no_line_crashes_and_none_gets_a_line_break(echoing: Translator, line: str) -> None:
    (found,) = echoing.translate([line], Wish(alignment=True, token_scores=True))
    assert len(found.text.split("\n")) == 1
    assert all(0 <= start <= end <= len(line) for (start, end), _ in found.alignment)
    assert all(0 <= start <= end <= len(found.text) for _, (start, end) in found.alignment)


@pytest.mark.parametrize("line", ["x" * 1_000_000, "a sentence. " * 9_000, "word " * 20_000], ids=len)
def test_very_long_lines_are_translated_whole(echoing: Translator, line: str) -> None:
    (found,) = echoing.translate([line])
    assert found.text.replace(" ", "") == line.replace(" ", "")


def test_lone_surrogates_are_no_text(echoing: Translator) -> None:
    assert echoing.translate(["a \ud800 b\udc00"])[0].text == "a b"


def test_the_score_of_a_line_in_parts_is_that_of_one_long_translation(echoing: Translator) -> None:
    line = " ".join(SENTENCES[:4])
    for penalty in (LengthPenalty(alpha=0), LengthPenalty(alpha=1, kind="power"), LengthPenalty()):
        (found,) = echoing.translate([line], Wish(penalty=penalty, token_scores=True))
        ends = [token for token in found.tokens if token.text == "</s>"]
        length = found.pieces + len(ends)
        assert len(ends) > 1
        assert len(found.tokens) == length
        assert found.score == pytest.approx(-length / penalty.at(length))
    (drawn,) = echoing.translate([line], Wish(sampling=Sampling()))
    assert drawn.score == pytest.approx(-length)


def test_the_next_best_of_a_line_in_parts_are_the_next_best_of_its_parts(echoing: Translator) -> None:
    line = " ".join(SENTENCES[:4])
    (found,) = echoing.translate([line], Wish(best=2))
    assert len(found.others) == 1
    assert found.others[0].pieces < found.pieces


def test_alignment_points_into_the_line_as_it_was_given(subword: Subword, echo: Echo) -> None:
    line = "  " + "   ".join(SENTENCES[:4]).replace(" ", "\t ")
    translator = Translator(echo, subword, mend=lambda text: " ".join(text.split()), most_pieces=20)
    (found,) = translator.translate([line], Wish(alignment=True))
    told = [(line[slice(*link.source)], found.text[slice(*link.target)]) for link in found.alignment]
    assert len(told) >= len(line.split())
    assert all(source == target for source, target in told)


def test_prefixes_are_encoded_and_go_to_the_first_sentence_of_a_line(
    echoing: Translator, echo: Echo, subword: Subword
) -> None:
    echoing.translate([" ".join(SENTENCES[:4]), "a"], prefixes=["the cat", ""])
    expected = tuple(subword.target.encode(["the cat"]).ids.tolist())
    assert [sentence.prefix for sentence in echo.heard] == [expected, *[()] * (len(echo.heard) - 1)]
    assert echo.heard[0].most == most_target_pieces(len(echo.heard[0].source)) + len(expected)


def test_a_prefix_begins_the_translation(model: Transformer, subword: Subword) -> None:
    (found,) = build_translator(model, subword).translate([SENTENCES[0]], GREEDY, prefixes=["the cat"])
    assert found.text.startswith("the cat")


def test_prefixes_that_do_not_fit_are_refused(echoing: Translator) -> None:
    with pytest.raises(TandemError, match="2 prefixes for 1 lines"):
        echoing.translate(["a"], prefixes=["b", "c"])
    with pytest.raises(TandemError, match=r"Prefix 2 has \d+ pieces, but at most 20"):
        echoing.translate(["a", "a"], prefixes=["b", "b " * 30])


def test_one_line_in_place_of_a_list_is_refused(echoing: Translator) -> None:
    with pytest.raises(TypeError, match=r"give \[line\]"):
        echoing.translate("the cat")


def test_a_translation_ends_at_its_limit(model: Transformer, subword: Subword) -> None:
    ids = Ragged(ids=np.full(3, 100), lengths=np.array([3]))
    (found,) = build_translator(model, subword).translate_ids(ids)
    assert 0 < found.pieces <= most_target_pieces(3) == 24


def test_lines_are_mended_as_the_training_text_was(model: Transformer, subword: Subword) -> None:
    plain = build_translator(model, subword)
    mending = build_translator(model, subword, mend=lambda line: line.replace("_", " "))
    assert mending.translate(["the_cat_sleeps"]) == plain.translate(["the cat sleeps"])


def test_a_model_that_has_diverged_says_nothing(model: Transformer, subword: Subword) -> None:
    model.target_embedding.data.fill_(math.nan)
    (found,) = build_translator(model, subword).translate(["a"])
    assert (found.text, found.score) == ("", -math.inf)


def test_a_line_break_spelled_in_bytes_does_not_part_the_line(echoing: Translator, subword: Subword) -> None:
    word, *breaks = (
        next(piece for piece in range(4, 300) if subword.target.decode([piece]) == spelled)
        for spelled in ("a", "\n", "\r")
    )
    ids = np.array([word, *breaks, word])
    (found,) = echoing.translate_ids(Ragged(ids=ids, lengths=np.array([4])))
    assert found.text.splitlines() == [found.text]


def test_segmented_text_is_joined_to_words(tmp_path: Path, model: Transformer) -> None:
    path = tmp_path / "subword.txt"
    path.write_text("<unk>\n<s>\n</s>\n<pad>\ndas\nHau@@\ns\nist\n")
    segmented = SegmentedModel(path)
    translator = build_translator(model, Subword(source=segmented, target=segmented))
    assert set(translator.translate(["das Hau@@ s"])[0].text.replace(" ", "")) <= set("<unk>dasHauist@")
