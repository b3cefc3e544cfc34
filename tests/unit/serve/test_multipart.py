"""Forms in parts: texts come out as they were sent, and what cannot be read is refused in a sentence."""

from contextlib import suppress

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tandem.serve.multipart import read_parts
from tandem.web.refusal import Refusal

MOST = 5
HEADER = "multipart/form-data; boundary=XX"


def form(*parts: str) -> bytes:
    return "".join(f"--XX\r\n{part}\r\n" for part in parts).encode() + b"--XX--\r\n"


def text(name: str, value: str) -> str:
    return f'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}'


def sent(fields: dict[str, str]) -> tuple[bytes, str]:
    """A form as another program writes it."""
    parts = {name: (None, value.encode()) for name, value in fields.items()}
    request = httpx.Request("POST", "http://here", files=parts)
    return request.read(), request.headers["content-type"]


@example(value="a\r\n--b\r\n")
@example(value="\r\n")
@given(value=st.text(st.characters(codec="utf-8"), max_size=40))
def test_texts_come_out_as_another_program_wrote_them(value: str) -> None:
    body, header = sent({"q": value, "source": "en"})
    assert read_parts(body, header, most=MOST) == {"q": value, "source": "en"}


def test_a_quoted_boundary_other_headers_and_text_around_the_parts_do_no_harm() -> None:
    part = "content-type: text/plain; charset=utf-8\r\ncontent-disposition: form-data; name=q\r\n\r\nschläft"
    body = b"preamble\r\n" + form(part) + b"epilogue"
    assert read_parts(body, 'multipart/form-data; boundary="XX"', most=MOST) == {"q": "schläft"}
    assert read_parts(b"--XX--", HEADER, most=MOST) == {}
    assert read_parts(form(text("", "a")), HEADER, most=MOST) == {"": "a"}
    assert read_parts(form(text('a\\"; filename=\\"b', "c")), HEADER, most=MOST) == {'a"; filename="b': "c"}


@pytest.mark.parametrize(
    ("body", "header", "status", "says"),
    [
        (form(text("q", "a")), "multipart/form-data", 400, "names no boundary"),
        (form(text("q", "a")), "multipart/form-data; boundary=", 400, "names no boundary"),
        (form(text("q", "a")), "multipart/form-data; boundary=YY", 400, "not whole"),
        (b"", HEADER, 400, "not whole"),
        (form(text("q", "a"))[:-10], HEADER, 400, "not whole"),
        (form("no headers"), HEADER, 400, "not whole"),
        (form(*[text("q", "a")] * (MOST + 1)), HEADER, 400, f"more than {MOST} fields"),
        (form(text("q", "a")).replace(b"\r\n\r\na", b"\r\n\r\n\xff"), HEADER, 400, "not UTF-8"),
        (form("Content-Disposition: form-data\r\n\r\na"), HEADER, 422, "has no name"),
        (form("\r\n\r\na"), HEADER, 422, "has no name"),
        (form(text('q"; filename="a.txt', "a")), HEADER, 422, "q is a file"),
        (form(text('q"; filename="', "a")), HEADER, 422, "q is a file"),
        (form(text("q\"; filename*=\"utf-8''a.txt", "a")), HEADER, 422, "q is a file"),
        (form(text("q" * 5_000, "a")), HEADER, 400, "not whole"),
    ],
)
def test_what_is_no_form_of_texts_is_refused(body: bytes, header: str, status: int, says: str) -> None:
    with pytest.raises(Refusal, match=says) as refused:
        read_parts(body, header, most=MOST)
    assert refused.value.status == status


def test_as_many_fields_as_may_be_are_read() -> None:
    parts = [text(f"field{number}", str(number)) for number in range(MOST)]
    assert len(read_parts(form(*parts), HEADER, most=MOST)) == MOST


@given(
    body=st.lists(
        st.sampled_from(
            [b"\r\n", b"--XX", b"--", b"\xff", b'content-disposition: x; name="q"', b"=?", b"*0*="]
        )
        | st.binary(max_size=9),
        max_size=12,
    ).map(b"".join),
    header=st.just(HEADER) | st.text(st.characters(codec="latin-1"), max_size=30),
)
def test_no_body_breaks_it(body: bytes, header: str) -> None:
    with suppress(Refusal):
        read_parts(body, header.replace("\n", "").replace("\r", ""), most=MOST)
