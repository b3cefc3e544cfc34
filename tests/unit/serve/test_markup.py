"""HTML of any form is cut into pieces that make it up again, and text is only what is text to a browser."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tandem.serve.markup import LEFT_ALONE, cut_markup

FRAGMENTS = """
<p> </p> <b> </b> <i class="a&gt;b"> </i> <br/> <img alt='>'> <code> </code> <script> </script> <pre> </pre>
<div translate="no"> </div> <!--x--> <!-- --> <![CDATA[ ]]> <![x[ <!DOCTYPE <?php ?> </> </ <a <a/ < > & &amp;
&nbsp; &#10; &#x; &#99999999999; " ' = - one two. drei
"""
Fragments = st.sampled_from(
    [*FRAGMENTS.split(), '<i title="a&gt;b">', '<b translate="no">', " ", "\n", "\r\n"]
)
Soup = st.lists(Fragments | st.text(max_size=5), max_size=30).map("".join)


def texts(html: str) -> list[str]:
    return [piece.text.strip() for piece in cut_markup(html) if piece.kind == "text" and piece.text.strip()]


@given(html=Soup)
@example(html="\r\n<b\n>\na\n</b\n>\n")
def test_all_pieces_together_are_the_html(html: str) -> None:
    assert "".join(piece.raw for piece in cut_markup(html)) == html


def test_pieces_are_text_tags_within_sentences_and_what_parts_these() -> None:
    html = "<p>a &amp; <B>b</B> <code>c</code><br>"
    kinds = [(piece.kind, piece.raw, piece.text) for piece in cut_markup(html) if piece.raw]
    assert kinds == [
        ("break", "<p>", ""),
        ("text", "a &amp; ", "a & "),
        ("open", "<B>", ""),
        ("text", "b", "b"),
        ("close", "</B>", ""),
        ("text", " ", " "),
        ("left", "<code>c</code>", "c"),
        ("break", "<br>", ""),
    ]


@pytest.mark.parametrize("tag", sorted(LEFT_ALONE))
def test_what_is_no_prose_is_left_alone(tag: str) -> None:
    assert texts(f"<{tag} id='x'>a <b>b</b></{tag.upper()} > c <{tag}>a</{tag}>") == ["c"]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("a <!-- b <p>c</p> d", ["a"]),
        ("a <b\x00 c='>'>d</b> e", ["a"]),
        ('<code><a b="</code> c <p title="d">e', []),
        ("<script>a </b> c</script> d", ["d"]),
        ("a <!--> b -->", ["a"]),
        ("a <!-- --!> b -->", ["a"]),
        ("a <!-- -- > b -->", ["a"]),
        ("a <!- x> b <!-- -- --> c", ["a", "b", "c"]),
        ("a <b c= 'd> e", ["a"]),
        ("""<p title="'d'" alt='"'>a""", ["a"]),
        ("a <![CDATA[ > ]]> b", ["a"]),
        ("a <![if x]> b <![x]> c", ["a", "b"]),
        ("a <script/> b", ["a"]),
        ("a <script><!-- <SCRIPT> </script> b --> </script> c", ["a"]),
        ("a <script><!-- b --></script> c <!-- d --> <script>e</script> f", ["a", "c", "f"]),
        ("a <b/> b <svg/> c <p/> d <br/> e", ["a", "b", "c", "d", "e"]),
    ],
)
def test_behind_what_a_browser_reads_otherwise_all_is_left_alone(html: str, expected: list[str]) -> None:
    assert texts(html) == expected


@pytest.mark.parametrize(
    "unit", ["<a ", "<a/", '<a b="', "<!--", "</", "<![", "&#", "<b>", "&nbsp;", "<code>"]
)
def test_long_stretches_of_broken_markup_are_cut(unit: str) -> None:
    html = unit * (100_000 // len(unit))  # minutes, where the parser looks ahead from each of them
    assert "".join(piece.raw for piece in cut_markup(html)) == html
