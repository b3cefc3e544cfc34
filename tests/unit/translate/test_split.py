"""Long lines in parts: sentences first, nothing lost but white space."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.translate.split import join_texts, split_line, split_sentences


def words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def characters(texts: Sequence[str]) -> list[int]:
    return [len(solid(text)) for text in texts]


def solid(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize(
    ("line", "sentences"),
    [
        ("It rains. We stay! Why? Because… So.", ["It rains.", "We stay!", "Why?", "Because…", "So."]),
        ('He said: "Go." She went.', ['He said: "Go."', "She went."]),
        ("„Geh!“ Sie ging.", ["„Geh!“", "Sie ging."]),
        (
            "Dr. Miller and Mrs. Jones met at 5 p.m. They left.",
            ["Dr. Miller and Mrs. Jones met at 5 p.m.", "They left."],
        ),
        (
            "He has 3. The dog has vitamin C. It sleeps.",
            ["He has 3.", "The dog has vitamin C.", "It sleeps."],
        ),
        ("Hunde, Katzen usw. Das reicht z.B. Sie.", ["Hunde, Katzen usw.", "Das reicht z.B. Sie."]),
        ("1. The cat sleeps. 2. The dog sleeps.", ["1. The cat sleeps.", "2. The dog sleeps."]),
        (
            "At 5 p.m. Tuesday J. A. Smith of Apple Inc. Europe left.",
            ["At 5 p.m. Tuesday J. A. Smith of Apple Inc. Europe left."],
        ),
        ("Das gilt z.B. am 3. Mai bzw. später. Gut.", ["Das gilt z.B. am 3. Mai bzw. später.", "Gut."]),
        ("J. S. Bach composed in 1723. Then he left.", ["J. S. Bach composed in 1723.", "Then he left."]),
        ("Version 3.14 costs 2.50 dollars. Buy it.", ["Version 3.14 costs 2.50 dollars.", "Buy it."]),
        ("Wait... What? No.", ["Wait...", "What?", "No."]),
        ("It was approx. five. no capital follows.", ["It was approx. five. no capital follows."]),
        ("今日は雨です。家にいます！なぜ？", ["今日は雨です。", "家にいます！", "なぜ？"]),
        ("他说：「走吧。」她走了。", ["他说：「走吧。」", "她走了。"]),
        ("यह घर है। वह बड़ा है।", ["यह घर है।", "वह बड़ा है।"]),
        ("هل هذا بيت؟ نعم.", ["هل هذا بيت؟", "نعم."]),
        ("  one  ", ["one"]),
        ("", []),
        (" ", []),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(line: str, sentences: list[str]) -> None:
    assert split_sentences(line) == sentences


def test_a_sentence_that_is_too_long_is_cut_at_clauses_that_are_put_together_as_far_as_they_fit() -> None:
    line = "One two three, four five; six seven, eight nine ten eleven. Twelve."
    assert split_line(line, words, most=5) == [
        "One two three, four five;",
        "six seven,",
        "eight nine ten eleven.",
        "Twelve.",
    ]


def test_a_clause_that_is_too_long_is_cut_at_words_and_a_word_anywhere() -> None:
    assert split_line("a b c d e f g", words, most=3) == ["a b c", "d e f", "g"]
    assert split_line("abcdefghijk lm", characters, most=8) == ["abcdefgh", "ijk", "lm"]
    assert split_line("汉字" * 5, characters, most=4) == ["汉字汉字", "汉字汉字", "汉字"]


def test_no_cut_parts_a_letter_from_its_accent() -> None:
    line = "e\u0301" * 6
    assert all(part.startswith("e") for part in split_line(line, characters, most=5))


Texts = st.text(
    st.sampled_from("ab.,!? \u3000\"'»汉。、é\u0301\u2028Z1") | st.characters(codec="utf-8"), max_size=200
)


@given(line=Texts, most=st.integers(1, 20))
def test_nothing_but_white_space_is_lost_and_all_parts_fit(line: str, most: int) -> None:
    parts = split_line(line, characters, most=most)
    assert solid("".join(parts)) == solid(line)
    assert all(part and part == part.strip() for part in parts)
    assert all(len(solid(part)) <= max(most, 9) for part in parts)


def test_a_million_characters_are_split_in_few_questions() -> None:
    asked: list[int] = []

    def count(texts: Sequence[str]) -> list[int]:
        asked.append(sum(map(len, texts)))
        return characters(texts)

    for line in ("x" * 1_000_000, "word " * 200_000, "A sentence. " * 80_000, "汉" * 1_000_000):
        parts = split_line(line, count, most=100)
        assert max(characters(parts)) <= 100
        assert solid("".join(parts)) == solid(line)
    assert sum(asked) < 20_000_000


@pytest.mark.parametrize("marks", [".", ",", ".,", "，,", '."', ',"', "。.", '"'])
def test_a_million_marks_without_a_space_are_looked_at_once(marks: str) -> None:
    # A second look at each would take hours.
    line = marks * (1_000_000 // len(marks)) + "x"
    assert "".join(split_line(line, characters, most=100)) == line


@pytest.mark.parametrize(
    ("texts", "joined"),
    [
        (["One.", "Two."], "One. Two."),
        (["你好。", "再见。"], "你好。再见。"),
        (["안녕.", "또 봐."], "안녕. 또 봐."),
        (["", "One.", "", "Two.", ""], "One. Two."),
        ([], ""),
    ],
)
def test_parts_are_joined_as_their_script_does(texts: list[str], joined: str) -> None:
    assert join_texts(texts) == joined
