import json
import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from tandem.errors import TandemError
from tandem.launch.report import Reports, read_failure, send_report


def said(**other: Any) -> dict[str, Any]:
    return {"rank": 0, "kind": "peer", "message": "m", "time_s": 1.0, **other}


def send(reports: Reports, data: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(data, reports.address)


def test_the_first_report_of_each_rank_arrives_once(tmp_path: Path) -> None:
    with Reports(tmp_path) as reports:
        send_report(reports.address, rank=1, kind="sentence", message="Erste – zuerst.")
        send_report(reports.address, rank=1, kind="peer", message="second")
        send_report(reports.address, rank=0, kind="unexpected", message="x" * 1_000_000)
        received = reports.received()
        assert received[1].message == "Erste – zuerst."
        assert received[1].time_s <= received[0].time_s
        assert 0 < len(received[0].message) < 1_000_000
        assert not reports.received()


@pytest.mark.parametrize("letter", ["\0", "ü", "😀", "\ud800"])
def test_a_long_message_of_any_letters_arrives(tmp_path: Path, letter: str) -> None:
    with Reports(tmp_path) as reports:
        send_report(reports.address, rank=0, kind="sentence", message=letter * 1_000_000)
        (failure,) = reports.received().values()
    assert len(failure.message) > 1_000
    assert failure.message.encode()


def test_a_report_to_nobody_is_no_error(tmp_path: Path) -> None:
    with Reports(tmp_path) as reports:
        address = reports.address
    send_report(address, rank=0, kind="peer", message="hello")
    assert not list(tmp_path.iterdir())


def test_a_folder_may_lie_deeper_than_a_socket_s_address_is_long(tmp_path: Path) -> None:
    folder = tmp_path / ("a" * 120) / ("b" * 120)
    folder.mkdir(parents=True)
    with Reports(folder) as reports:
        send_report(reports.address, rank=3, kind="peer", message="hello")
        assert list(reports.received()) == [3]


def test_the_socket_is_a_file_of_its_folder(tmp_path: Path) -> None:
    with Reports(tmp_path) as reports:
        assert Path(reports.address).parent == tmp_path
        assert stat.S_ISSOCK(Path(reports.address).lstat().st_mode)


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b'{"rank":' * 20_000,
        b"9" * 10_000,
        b"\xff",
        b"",
        b"end",
        b"mark",
        b"[]",
        json.dumps(said(rank="0")).encode(),
        json.dumps(said(rank=-1)).encode(),
        json.dumps(said(rank=10**30)).encode(),
        json.dumps(said(rank=[])).encode(),
        json.dumps(said(kind="other")).encode(),
        json.dumps(said(kind=[])).encode(),
        json.dumps(said(message=7)).encode(),
        json.dumps(said(time_s=float("nan"))).encode(),
        json.dumps(said(time_s=10**400)).encode(),
    ],
    ids=lambda data: repr(data[:30]),
)
@pytest.mark.timeout(60)
def test_what_is_no_failure_neither_counts_nor_ends_the_listening(tmp_path: Path, data: bytes) -> None:
    with Reports(tmp_path) as reports:
        send(reports, data)
        assert not reports.received()
        send_report(reports.address, rank=5, kind="peer", message="hello")
        assert list(reports.received()) == [5]


@pytest.mark.timeout(60)
def test_more_than_the_queue_holds_is_read_as_it_comes(tmp_path: Path) -> None:
    with Reports(tmp_path) as reports:
        for rank in range(2_000):
            send_report(reports.address, rank=rank, kind="peer", message="hello")
        assert len(reports.received()) == 2_000


@pytest.mark.timeout(60)
def test_what_another_user_sends_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Reports(tmp_path) as reports:
        with monkeypatch.context() as patch:
            # The sender is whoever the kernel says: here everybody but a user that there is not.
            patch.setattr(os, "getuid", lambda: 123_456)
            send_report(reports.address, rank=0, kind="sentence", message="forged")
            assert not reports.received()
        send_report(reports.address, rank=1, kind="sentence", message="true")
        assert list(reports.received()) == [1]


def test_a_folder_without_room_for_sockets_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(TandemError, match="Cannot make a socket in .*set TMPDIR"):
        Reports(file)


def test_a_failure_keeps_what_it_says() -> None:
    failure = read_failure(said(rank=2, time_s=7, more="than that"))
    assert (failure.rank, failure.kind, failure.message, failure.time_s) == (2, "peer", "m", 7.0)
