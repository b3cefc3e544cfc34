"""The append-only file below the writer."""

import os
import resource
import signal
from pathlib import Path

import pytest

from tandem.runlog.event import RunFinished
from tandem.runlog.logfile import LogFile
from tandem.runlog.record import Record, to_line


def line(sequence: int, reason: str = "x") -> bytes:
    event = RunFinished(reason=reason)
    return to_line(Record(time_ns=sequence, clock_s=0.0, rank=0, sequence=sequence, event=event))


def opened(path: Path) -> LogFile:
    file = LogFile(path)
    file.open()
    return file


def test_a_new_file_starts_at_nought_and_counts_on(tmp_path: Path) -> None:
    file = opened(tmp_path / "log/rank.jsonl")
    assert file.sequence == 0
    assert file.append([line(0), line(1)]) == 2
    assert file.sequence == 2
    file.close()
    assert (tmp_path / "log/rank.jsonl").read_bytes() == line(0) + line(1)


@pytest.mark.parametrize("reason", ["short", "long " * 50_000])
def test_a_file_goes_on_after_its_last_whole_record(tmp_path: Path, reason: str) -> None:
    path = tmp_path / "rank.jsonl"
    path.write_bytes(line(0) + line(1, reason) + line(2)[:-9])
    file = opened(path)
    assert file.sequence == 2
    assert file.append([line(2)]) == 1
    file.close()
    assert path.read_bytes() == line(0) + line(1, reason) + line(2)[:-9] + b"\n" + line(2)


def test_a_file_full_of_rubbish_is_kept_and_written_after(tmp_path: Path) -> None:
    path = tmp_path / "rank.jsonl"
    path.write_bytes(b"rubbish\n" * 20_000)
    file = opened(path)
    assert file.sequence == 0
    file.append([line(0)])
    file.close()
    assert path.read_bytes() == b"rubbish\n" * 20_000 + line(0)


def test_a_refused_write_counts_whole_lines_and_the_next_one_starts_clean(tmp_path: Path) -> None:
    path = tmp_path / "rank.jsonl"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(line(0)) * 2 + 10, hard))
    try:
        file = opened(path)
        assert file.append([line(0), line(1), line(2), line(3)]) == 2
        assert file.append([line(2)]) == 0
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    file.open()
    assert file.sequence == 2
    assert file.append([line(2)]) == 1
    file.close()
    assert path.read_bytes() == line(0) + line(1) + line(2)[:10] + b"\n" + line(2)


def test_a_place_that_cannot_be_opened_refuses_lines_without_raising(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a file where the folder should be")
    file = opened(tmp_path / "log/rank.jsonl")
    assert file.append([line(0)]) == 0
    file.close()


def test_a_file_closed_by_somebody_else_is_opened_again(tmp_path: Path) -> None:
    file = opened(tmp_path / "rank.jsonl")
    file.append([line(0)])
    assert file._descriptor is not None
    os.close(file._descriptor)
    assert file.append([line(1)]) == 0
    file.open()
    assert file.append([line(1)]) == 1
    file.close()
    assert (tmp_path / "rank.jsonl").read_bytes() == line(0) + line(1)


def test_a_log_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"text")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run/linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "run/rank.jsonl").symlink_to(tmp_path / "precious")
    os.mkfifo(tmp_path / "run/pipe.jsonl")
    for name in ("rank.jsonl", "linked/rank.jsonl", "pipe.jsonl"):
        file = LogFile(tmp_path / "run" / name)
        file.open()
        assert file.append([b"line\n"]) == 0
    assert (tmp_path / "precious").read_bytes() == b"text"
    assert not any((tmp_path / "elsewhere").iterdir())


def test_a_log_that_ends_in_a_hole_goes_on_at_its_last_line(tmp_path: Path) -> None:
    path = tmp_path / "log/rank-00000.jsonl"
    path.parent.mkdir()
    record = Record(time_ns=1, clock_s=1.0, rank=0, sequence=41, event=RunFinished(reason="completed"))
    path.write_bytes(to_line(record))
    os.truncate(path, 3 << 30)
    file = LogFile(path)
    file.open()
    assert file.sequence == 42
    file.close()
    assert path.stat().st_size == (3 << 30) + 1


def test_no_more_than_a_line_of_a_strange_end_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    pread = os.pread

    def counted(descriptor: int, size: int, offset: int) -> bytes:
        read.append(size)
        return pread(descriptor, size, offset)

    monkeypatch.setattr(os, "pread", counted)
    monkeypatch.setattr("tandem.runlog.logfile._MOST_TAIL_BYTES", 1 << 18)
    path = tmp_path / "log/rank-00000.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"x" * (1 << 20))
    file = LogFile(path)
    file.open()
    file.close()
    assert max(read) == 1 << 18
