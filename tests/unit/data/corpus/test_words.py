"""Cleaning counts words as each script writes them; the sentences are made here, from small grammars."""

import random
from collections.abc import Mapping

import pytest

from tandem.config import CleanSection
from tandem.data.corpus.clean import Cleaner
from tandem.data.corpus.read import RawChunk
from tandem.data.corpus.words import words_of

PAIRS = 1000
ENGLISH = (
    ("the old teacher", "my small sister", "a farmer", "the child"),
    ("reads", "buys", "sees"),
    (
        "a new book",
        "fresh bread",
        "the white house by the river",
        "seven apples",
    ),
)
GRAMMARS: Mapping[str, tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], str, str]] = {
    "zh": (
        (
            ("老教师", "我的小妹妹", "一个农民", "孩子"),
            ("读", "买", "看见"),
            ("一本新书", "新鲜面包", "河边的白房子", "七个苹果"),
        ),
        "",
        "，",
    ),
    "ja": (
        (
            ("年を取った先生は", "私の妹は", "農家は", "子供は"),
            ("新しい本を", "焼きたてのパンを", "川のそばの白い家を", "リンゴを七つ"),
            ("読みます", "買います", "見ます"),
        ),
        "",
        "、",
    ),
    "th": (
        (
            ("ครูคนเก่า", "น้องสาวของฉัน", "ชาวนา", "เด็ก"),
            ("อ่าน", "ซื้อ", "เห็น"),
            ("หนังสือเล่มใหม่", "ขนมปังสด", "บ้านสีขาวริมแม่น้ำ", "แอปเปิ้ลเจ็ดลูก"),
        ),
        "",
        " ",
    ),
    "ko": (
        (
            ("늙은 선생님은", "내 여동생은", "농부는", "아이는"),
            ("새 책을", "신선한 빵을", "강가의 하얀 집을", "사과 일곱 개를"),
            ("읽는다", "산다", "본다"),
        ),
        " ",
        ", ",
    ),
    "ar": (
        (
            ("يقرأ", "يشتري", "يرى"),
            ("المعلم العجوز", "أخي الصغير", "الفلاح", "الطفل"),
            ("كتابا جديدا", "خبزا طازجا", "البيت الأبيض قرب النهر", "سبع تفاحات"),
        ),
        " ",
        "، ",
    ),
    "he": (
        (
            ("המורה הזקן", "אחי הקטן", "האיכר", "הילד"),
            ("קורא", "קונה", "רואה"),
            ("ספר חדש", "לחם טרי", "את הבית הלבן ליד הנהר", "שבעה תפוחים"),
        ),
        " ",
        ", ",
    ),
    "hi": (
        (
            ("बूढ़ा शिक्षक", "मेरी छोटी बहन", "किसान", "बच्चा"),
            ("नई किताब", "ताज़ी रोटी", "नदी के पास सफेद घर", "सात सेब"),
            ("पढ़ता है", "खरीदता है", "देखता है"),
        ),
        " ",
        ", ",
    ),
    "ru": (
        (
            ("старый учитель", "моя младшая сестра", "крестьянин", "ребёнок"),
            ("читает", "покупает", "видит"),
            ("новую книгу", "свежий хлеб", "белый дом у реки", "семь яблок"),
        ),
        " ",
        ", ",
    ),
    "de": (
        (
            ("der alte Lehrer", "meine kleine Schwester", "ein Bauer", "das Kind"),
            ("liest", "kauft", "sieht"),
            ("ein neues Buch", "frisches Brot", "das weiße Haus am Fluss", "sieben Äpfel"),
        ),
        " ",
        ", ",
    ),
}


def made_pairs(language: str, dice: random.Random) -> list[tuple[str, str]]:
    """Sentences of one to nine clauses, alike on both sides in length; each pair is another."""
    (first, second, third), space, comma = GRAMMARS[language]
    made: dict[tuple[str, str], None] = {}
    while len(made) < PAIRS:
        clauses = range(dice.randint(1, 9))
        english = ", ".join(" ".join(dice.choice(part) for part in ENGLISH) for _ in clauses)
        other = comma.join(space.join(dice.choice(part) for part in (first, second, third)) for _ in clauses)
        made[english, other] = None
    return list(made)


def kept(pairs: list[tuple[str, str]], language: str) -> int:
    cleaner = Cleaner(CleanSection(), {}, languages=("en", language))
    text = "".join(f"{source}\t{target}\n" for source, target in pairs).encode()
    chunk = RawChunk(first_line=1, lines=len(pairs), source=text, target=None)
    return cleaner.clean(chunk, "made").tally.kept


@pytest.mark.parametrize("language", GRAMMARS)
def test_good_pairs_of_every_script_are_kept(language: str) -> None:
    assert kept(made_pairs(language, random.Random(1)), language) >= 0.99 * PAIRS


@pytest.mark.parametrize("language", GRAMMARS)
def test_spoilt_pairs_are_dropped_as_in_german(language: str) -> None:
    """A long sentence beside a short one, a copy, tags, an address, a text of pages, and a side that is missing."""
    dice = random.Random(2)
    pairs = [pair for pair in made_pairs(language, dice) if len(pair[0].split()) > 40]
    short = min((pair for pair in made_pairs(language, dice)), key=lambda pair: len(pair[1]))
    space = " " if GRAMMARS[language][1] else ""
    for spoil in (
        lambda pair: (short[0].split(" ", maxsplit=1)[0], pair[1]),
        lambda pair: (pair[1], pair[1]),
        lambda pair: (pair[0], f"{pair[1]} <b>x</b>"),
        lambda pair: (pair[0], f"{pair[1]}{space}https://example.org/{'x' * 60}"),
        lambda pair: (space.join([pair[0]] * 9), space.join([pair[1]] * 9)),
        lambda pair: (pair[0], ""),
    ):
        assert kept([spoil(pair) for pair in pairs], language) == 0


def test_words_without_such_scripts_are_left_as_they_are() -> None:
    text = "Der Fluss „Spree“ — naïve Straßen: 한국어 слова שלום कखग."
    assert words_of(text) == text.split()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("我们在河边看见白房子。", 6),
        ("请访问 https://example.org/a 网站", 4),
        ("ＡＢＣ１２３です", 4),
        ("ครูอ่านหนังสือเล่มใหม่", 5),
        ("私はPythonを書く", 4),
    ],
)
def test_stretches_without_spaces_count_by_their_characters(text: str, count: int) -> None:
    assert len(words_of(text)) == count
