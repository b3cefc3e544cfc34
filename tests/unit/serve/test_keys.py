"""API keys: read from a file, and asked for."""

from pathlib import Path

import pytest

from tandem.errors import TandemError
from tandem.serve.keys import ApiKeys, read_keys
from tandem.web.refusal import Refusal


def status(keys: ApiKeys, authorization: str | None = None, given: str | None = None) -> int:
    try:
        if not keys.check_header(authorization, ""):
            keys.check_field(given, "")
    except Refusal as refusal:
        return refusal.status
    return 200


def test_a_key_in_the_header_goes_before_one_in_the_body() -> None:
    keys = ApiKeys(["key-number-one", "schlüssel-zwei"])
    assert status(keys, "Bearer key-number-one") == 200
    assert status(keys, "bearer  schlüssel-zwei ") == 200
    assert status(keys, None, "key-number-one") == 200
    assert status(keys, "Basic abc", "key-number-one") == 200
    assert status(keys, "Bearer key-number-on", "key-number-one") == 403
    assert status(keys, None, "") == 401
    assert status(ApiKeys()) == 200


def test_keys_are_lines_of_a_file_and_comments_are_not(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# of the team\n\n  first-secret \nsecond-secret\n", encoding="utf-8")
    file.chmod(0o600)
    keys = read_keys(file)
    assert [status(keys, None, key) for key in ("first-secret", "second-secret", "# of the team")] == [
        200,
        200,
        403,
    ]


def test_neither_a_byte_order_mark_nor_an_indented_comment_is_of_a_key(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_bytes("\ufefffirst-secret\n  # a comment\n".encode())
    file.chmod(0o600)
    keys = read_keys(file)
    assert [status(keys, None, key) for key in ("first-secret", "# a comment")] == [200, 403]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"# nothing\n", "holds no API key"),
        (b"long-enough\nshort\n", "in line 2 of"),
        (b"\xff\xfe", "is not UTF-8"),
    ],
)
def test_a_file_without_good_keys_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "keys"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(TandemError, match=says):
        read_keys(file)
