"""HTML keeps its markup whatever it is and whatever the model says, and its text is translated in sentences."""

import re
from collections import Counter
from collections.abc import Sequence
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.serve.fake import Fake
from tests.unit.serve.test_markup import Soup

from tandem.serve.hypertext import build_hypertext
from tandem.translate.translator import Link, Translation
from tandem.translate.wish import Wish

EVIL = "<evil a='b'> &evil; </evil>"


def translated(html: str, *, is_aligned: bool = True) -> str:
    """With words turned around: `a bc` becomes `bc! a!`."""
    page = build_hypertext(html)
    return page.rewritten(Fake().translate(page.lines, Wish(alignment=is_aligned)))


def said(text: str, alignment: Sequence[Link] = ()) -> Translation:
    return Translation(text=text, score=0.0, pieces=1, alignment=tuple(alignment))


@pytest.mark.parametrize(
    ("html", "lines"),
    [
        ("", []),
        ("plain text", ["plain text"]),
        ("<p>One\n  text.</p><p>Two.</p>", ["One text.", "Two."]),
        ("line<br>line<img>line<!---->line", ["line"] * 4),
        ("<b>all of it</b>", ["all of it"]),
        ("<p>Big <b>red</b> dog</p>", ["Big red dog", "Big", "red", "dog"]),
        ("Fish &amp; chips &eacute;", ["Fish & chips é"]),
        ("2 < 3 and I <3 you", ["2 < 3 and I <3 you"]),
        ("<p>12 | &nbsp; &rarr;</p>", []),
        ("<script>var a = 'b';</script><style>p {}</style><pre>x y</pre>", []),
        ('<p translate="no">No <b>word</b></p><div translate=NO>nor <div>a</div> b</div> yes', ["yes"]),
        ('<img alt="a picture" translate="no"> seen', ["seen"]),
        ("<p>Run <code>ls -l</code> now</p>", ["Run ls -l now", "Run", "now"]),
        ("<p><code>ls -l</code></p>", []),
        ("<!-- a comment --><!DOCTYPE html><?php echo 1 ?>", []),
        ("<p>left <b>open</p><p>and</b> closed</p>", ["left", "open", "and", "closed"]),
        ("<b>crossed <i>over</b> here</i>", ["crossed", "over", "here"]),
    ],
)
def test_text_is_translated_in_sentences_as_far_as_markup_lets_them_be_seen(
    html: str, lines: list[str]
) -> None:
    assert build_hypertext(html).lines == lines


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>\n  a b\n</p>\t<p>c</p>", "<p>\n  b! a!\n</p>\t<p>c!</p>"),
        ('<p CLASS=x title="a b">a</p >', '<p CLASS=x title="a b">a!</p >'),
        ("&nbsp;a &amp; b&#160;\r\n", "&nbsp;b! &amp;! a!&#160;\r\n"),
        ("<p>a<!-- b -->c</p>", "<p>a!<!-- b -->c!</p>"),
        ("<p>a <b>b</b> c</p>", "<p>c! <b>b!</b> a!</p>"),
        (" <b> a</b> <i>b\n</i>", " <i>b!</i> <b>a!</b>\n"),
        ("a <b>b <i>c</i></b>", "<b><i>c!</i> b!</b> a!"),
        ("a <b><i>b</i></b>", "<b><i>b!</i></b> a!"),
        ("<b>a <i>b</i></b>", "<b><i>b!</i> a!</b>"),
        ("a <code>b</code> c", "a! <code>b</code> c!"),
        ("H<sub>2</sub>O b", "H!<sub>2</sub>b! O!"),
        ("a<textarea>b<b>c</textarea>d", "a!<textarea>b<b>c</textarea>d!"),
    ],
)
def test_markup_stays_and_goes_with_its_words(html: str, expected: str) -> None:
    assert translated(html) == expected


def test_runs_between_tags_are_translated_apart_where_words_cannot_be_followed() -> None:
    assert translated("<p>a b <b>c d</b> e</p>", is_aligned=False) == "<p>b! a! <b>d! c!</b> e!</p>"
    many = "<b>a</b> <i>b c</i> " * 20
    assert translated(many) == "<b>a!</b> <i>c! b!</i> " * 20


def test_a_part_that_is_left_alone_stays_in_its_sentence_where_the_model_repeats_it() -> None:
    page = build_hypertext("Run <code class='x'>ls -l</code>, please")
    alignment = [
        Link(source=(0, 3), target=(11, 16)),
        Link(source=(4, 9), target=(5, 10)),
        Link(source=(9, 17), target=(0, 4)),
    ]
    whole = said("Tu's ls -l & fertig", alignment)
    rest = [said("Lauf"), said("bitte")]
    assert page.rewritten([whole, *rest]) == "Tu's <code class='x'>ls -l</code> &amp; fertig"
    changed = said("Tu's LS -L & fertig", alignment)
    assert page.rewritten([changed, *rest]) == "Lauf <code class='x'>ls -l</code>bitte"


@pytest.mark.parametrize(
    ("html", "text", "alignment", "expected"),
    [
        pytest.param(
            "He <b>gave up</b> it",
            "Er gab es auf.",
            [((0, 2), (0, 2)), ((3, 7), (3, 6)), ((11, 13), (7, 9)), ((8, 10), (10, 13))],
            "Er <b>gab</b> es auf.",
            id="of words that are torn apart the longest group",
        ),
        pytest.param(
            "the <b>train</b> station",
            "der Bahnhof",
            [((0, 3), (0, 3)), ((4, 9), (4, 11)), ((10, 17), (4, 11))],
            "der <b>Bahnhof</b>",
            id="a word that comes of one within and one outside",
        ),
        pytest.param(
            "<b>very <i>red</i></b> dog",
            "sehr Hund rot",
            [((0, 4), (0, 4)), ((9, 12), (5, 9)), ((5, 8), (10, 13))],
            "<b>VERY <i>RED</i></b> DOG",
            id="an inner one that would stand outside",
        ),
        pytest.param(
            "<b>one</b> <i>two</i> dog",
            "einzwei",
            [((0, 3), (0, 4)), ((4, 7), (3, 7))],
            "<b>ONE</b> <i>TWO</i> DOG",
            id="two that would cross",
        ),
    ],
)
def test_elements_are_placed_where_that_breaks_nothing(
    html: str, text: str, alignment: list[tuple[tuple[int, int], tuple[int, int]]], expected: str
) -> None:
    page = build_hypertext(html)
    links = [Link(source=source, target=target) for source, target in alignment]
    runs = [said(line.upper()) for line in page.lines[1:]]
    assert page.rewritten([said(text, links), *runs]) == expected


def test_what_the_model_has_no_words_for_is_kept() -> None:
    page = build_hypertext("<p>a &eacute;</p> <b>b</b> c")
    assert page.rewritten([said("")] * len(page.lines)) == "<p>a &eacute;</p> <b>b</b> c"


def test_a_number_of_no_character_does_no_harm() -> None:
    number = "&#" + "9" * 5_000 + ";"
    assert translated(f'<p title="{number}">{number} a</p>') == f'<p title="{number}">a! \ufffd!</p>'


@given(html=Soup)
@example(html="&#x;<p>a</p>")
@example(html="\n<b>\r\na</b>\n")
def test_all_is_kept_byte_for_byte_where_the_model_repeats_what_it_is_given(html: str) -> None:
    page = build_hypertext(html)
    assert page.rewritten([said(line) for line in page.lines]) == html


@given(html=Soup, data=st.data())
def test_whatever_the_model_says_is_text(html: str, data: st.DataObject) -> None:
    page = build_hypertext(html)
    result = page.rewritten([said(EVIL, data.draw(alignments(line, EVIL))) for line in page.lines])
    assert ("evil" in result) == bool(page.lines)
    assert not re.search("</?evil|&evil", result)


def alignments(source: str, target: str) -> st.SearchStrategy[list[Link]]:
    """Any alignment of the words of two lines: of each with another one, or of some with any."""
    words, others = ([found.span() for found in re.finditer(r"\S+", text)] for text in (source, target))
    some = st.lists(st.tuples(st.sampled_from(words), st.sampled_from(others)), unique=True)
    each = st.permutations(others).map(lambda mixed: list(zip(words, mixed, strict=False)))
    return (some | each).map(lambda pairs: [Link(source=one, target=other) for one, other in pairs])


class Outline(HTMLParser):
    """Tags as they are written, whether they nest, and the words."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.words: Counter[str] = Counter()
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, _attrs: object) -> None:
        self.tags[self.get_starttag_text() or ""] += 1
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.update(data.lower().split())


def element(content: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    numbered = st.tuples(st.sampled_from(["b", "i", "a", "p", "code"]), st.integers(0, 99), content)
    return numbered.map(lambda parts: '<{0} id="{1}&lt;">{2}</{0}>'.format(*parts))


Words = st.lists(st.sampled_from(["one", "two", "three", "4"]), max_size=4).map(" ".join)
Trees = st.recursive(Words, lambda inner: st.lists(element(inner) | Words, max_size=5).map(" ".join))


@given(html=Trees, data=st.data())
def test_elements_nest_and_no_word_is_lost_wherever_the_alignment_puts_them(
    html: str, data: st.DataObject
) -> None:
    page = build_hypertext(html)
    found = [said(line.upper(), data.draw(alignments(line, line))) for line in page.lines]
    before, after = Outline(html), Outline(page.rewritten(found))
    assert after.tags == before.tags
    assert after.words == before.words
