"""Forms in parts (multipart/form-data), as browsers and `curl -F` send them: texts are read, files are refused."""

import re

from tandem.web.refusal import Refusal

__all__ = ["KIND", "read_parts"]

KIND = "multipart/form-data"

MOST_HEAD_BYTES = 4_096
"""Of what stands before the text of a part."""

_BREAK = b"\r\n"
_TORN = "The form is not whole: its parts must stand between the boundary that Content-Type names, and end with it."

# Not with the email package, which fails on parameters of mail that no form has.
_DISPOSITION = re.compile(r"^content-disposition[ \t]*:(.*)$", re.IGNORECASE | re.MULTILINE)
_PARAMETER = re.compile(r';\s*+([^\s=;"]++)\s*+=\s*+(?:"((?:[^"\\]|\\.)*+)"|([^\s;"]*+))')
_ESCAPED = re.compile(r"\\(.)")


def read_parts(body: bytes, content_type: str, *, most: int) -> dict[str, str]:
    """The texts of a form by name, of a name that comes twice the last; at most so many parts."""
    boundary = _parameters(content_type).get("boundary", "").encode("latin-1", "replace")
    if not boundary:
        raise Refusal(400, f"The Content-Type header names no boundary: write it as {KIND}; boundary=….")
    # A boundary follows a line break, the first one where nothing stands before it too.
    _, *parts = (_BREAK + body).split(_BREAK + b"--" + boundary, most + 2)
    if len(parts) > most + 1:
        raise Refusal(400, f"The form has more than {most} fields.")
    if not parts or not parts[-1].startswith(b"--"):
        raise Refusal(400, _TORN)
    return dict(_field(part) for part in parts[:-1])


def _field(part: bytes) -> tuple[str, str]:
    """Name and text of a part."""
    head, parted, content = part.partition(_BREAK * 2)
    if not parted or len(head) > MOST_HEAD_BYTES:
        raise Refusal(400, _TORN)
    found = _DISPOSITION.search(head.decode("utf-8", "replace"))
    said = _parameters(found[1]) if found else {}
    if "name" not in said:
        raise Refusal(422, "A part of the form has no name.")
    if any(name.startswith("filename") for name in said):
        raise Refusal(422, f"{said['name'][:40]} is a file: send its text as a field.")
    try:
        return said["name"], content.decode()
    except UnicodeDecodeError:
        raise Refusal(400, "The body is not UTF-8.") from None


def _parameters(header: str) -> dict[str, str]:
    """What a header says behind its first word, by name in lower case."""
    return {
        found[1].lower(): found[3] if found[2] is None else _ESCAPED.sub(r"\1", found[2])
        for found in _PARAMETER.finditer(header)
    }
