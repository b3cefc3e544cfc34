"""Files of keys that only their owner reads, and keys that cannot be guessed quickly."""

import os
from pathlib import Path

import pytest

from tandem.errors import TandemError
from tandem.web.keys import MOST_CLIENTS, Keys, Patience, bearer, read_secret_file


class Clock:
    """Stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys(clock: Clock) -> Keys:
    return Keys(["the-right-key"], name="API key", patience=Patience(forgiven=2, clock=clock))


def status(keys: Keys, text: str, client: str = "192.0.2.7") -> int:
    refusal = keys.check(text, client)
    return refusal.status if refusal else 200


def secret(path: Path, mode: int = 0o600) -> Path:
    path.write_text("a-key-of-mine\n", encoding="utf-8")
    path.chmod(mode)
    return path


def test_a_file_of_ones_own_is_read(tmp_path: Path) -> None:
    assert read_secret_file(secret(tmp_path / "keys")) == "a-key-of-mine\n"
    assert read_secret_file(secret(tmp_path / "keys", 0o400)) == "a-key-of-mine\n"


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o640, 0o620, 0o644, 0o666])
def test_a_file_that_others_read_or_write_is_refused_with_the_cure(tmp_path: Path, mode: int) -> None:
    path = secret(tmp_path / "keys", mode)
    with pytest.raises(TandemError, match=f"chmod 600 {path}"):
        read_secret_file(path)


def test_a_link_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(secret(tmp_path / "keys"))
    with pytest.raises(TandemError, match="is a link"):
        read_secret_file(link)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(TandemError, match="is not a file"):
        read_secret_file(tmp_path / "pipe")


@pytest.mark.parametrize("place", ["/dev/zero", "/tmp"])
def test_a_device_and_a_folder_are_refused(place: str) -> None:
    with pytest.raises(TandemError, match="is not a file"):
        read_secret_file(Path(place))


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = secret(tmp_path / "keys")
    os.truncate(path, 2**40)
    with pytest.raises(TandemError, match="longer than"):
        read_secret_file(path)


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = secret(tmp_path / "keys")
    os.chown(path, 12_345, -1) if os.geteuid() == 0 else monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    with pytest.raises(TandemError, match="another user"):
        read_secret_file(path)


def test_what_root_gives_to_a_service_is_read_through_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = secret(tmp_path / "keys", 0o440)
    if path.stat().st_uid != 0:
        pytest.skip("only root writes what is root's")
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    assert read_secret_file(path) == "a-key-of-mine\n"


def test_after_wrong_keys_each_wait_is_longer_up_to_a_bound(keys: Keys, clock: Clock) -> None:
    assert [status(keys, "wrong") for _ in range(4)] == [403, 403, 403, 429]
    waits = []
    for _ in range(8):
        refusal = keys.check("wrong", "192.0.2.7")
        assert refusal is not None
        waits.append(int(refusal.headers["Retry-After"]))
        clock.now += waits[-1]
        assert status(keys, "wrong") == 403
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30]


def test_while_it_waits_a_right_key_says_no_more_than_a_wrong_one(keys: Keys, clock: Clock) -> None:
    for _ in range(3):
        status(keys, "wrong")
    refusals = [keys.check(text, "192.0.2.7") for text in ("wrong", "the-right-key")]
    assert len({each.sentence for each in refusals if each}) == 1
    clock.now += 1
    assert status(keys, "the-right-key") == 200


def test_wrong_keys_are_forgotten_in_time(keys: Keys, clock: Clock) -> None:
    for _ in range(3):
        status(keys, "wrong")
    clock.now += 1_000
    assert [status(keys, "wrong") for _ in range(3)] == [403, 403, 403]


def test_one_client_locks_no_other_out(keys: Keys) -> None:
    for _ in range(10):
        status(keys, "wrong")
    assert status(keys, "the-right-key", "192.0.2.8") == 200


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.7", "192.0.2.7", True),
        ("::ffff:192.0.2.7", "::ffff:192.0.2.8", False),
    ],
)
def test_addresses_of_one_host_count_together(keys: Keys, first: str, second: str, *, is_same: bool) -> None:
    for _ in range(3):
        status(keys, "wrong", first)
    assert status(keys, "the-right-key", second) == (429 if is_same else 200)


def test_strangers_fill_no_memory(clock: Clock) -> None:
    patience = Patience(clock=clock)
    for number in range(MOST_CLIENTS + 100):
        patience.count(f"client {number}")
    assert len(patience._wrong) == MOST_CLIENTS


@pytest.mark.parametrize(
    ("header", "key"),
    [("Bearer abc ", "abc"), ("bearer abc", "abc"), ("Basic abc", ""), (None, ""), ("", "")],
)
def test_the_key_of_a_header_is_what_follows_bearer(header: str | None, key: str) -> None:
    assert bearer(header) == key
