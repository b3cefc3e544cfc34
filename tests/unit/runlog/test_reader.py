"""Reading one or many files, whole or damaged, dead or alive."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.errors import TandemError
from tandem.runlog import reader
from tandem.runlog.event import StageStarted
from tandem.runlog.layout import RunLayout
from tandem.runlog.reader import ReadReport, follow, read_records
from tandem.runlog.record import Record, to_line


def record(time_ns: int, *, rank: int = 0, sequence: int = 0) -> Record:
    event = StageStarted(stage=f"{rank}/{sequence}")
    return Record(time_ns=time_ns, clock_s=0.0, rank=rank, sequence=sequence, event=event)


def write(run: Path, rank: int, data: bytes) -> None:
    path = RunLayout(run).rank_log(rank)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def append(run: Path, rank: int, data: bytes) -> None:
    with RunLayout(run).rank_log(rank).open("ab") as file:
        file.write(data)


def test_two_ranks_are_merged_in_time_order(tmp_path: Path) -> None:
    ours = [record(time_ns, rank=0, sequence=n) for n, time_ns in enumerate((1, 4, 6))]
    theirs = [record(time_ns, rank=1, sequence=n) for n, time_ns in enumerate((2, 3, 7))]
    write(tmp_path, 0, b"".join(map(to_line, ours)))
    write(tmp_path, 1, b"".join(map(to_line, theirs)))
    report = ReadReport()
    assert [each.time_ns for each in read_records(tmp_path, report)] == [1, 2, 3, 4, 6, 7]
    assert report == ReadReport(records=6)


@given(st.lists(st.lists(st.integers(0, 50), max_size=8), min_size=1, max_size=4))
def test_each_file_keeps_its_order_even_when_its_clock_goes_back(
    tmp_path_factory: pytest.TempPathFactory, times: list[list[int]]
) -> None:
    run = tmp_path_factory.mktemp("run")
    for rank, column in enumerate(times):
        write(run, rank, b"".join(to_line(record(at, rank=rank, sequence=n)) for n, at in enumerate(column)))
    found = list(read_records(run))
    assert len(found) == sum(map(len, times))
    for rank, column in enumerate(times):
        assert [each.sequence for each in found if each.rank == rank] == list(range(len(column)))
    if all(column == sorted(column) for column in times):
        assert [each.time_ns for each in found] == sorted(at for column in times for at in column)


def test_damaged_lines_and_a_torn_last_one_are_skipped_and_counted(tmp_path: Path) -> None:
    lines = [to_line(record(n, sequence=n)) for n in range(4)]
    write(tmp_path, 0, lines[0] + b"\xff\xfe\n" + lines[1][:20] + b"\n" + lines[2] + b"\n" + lines[3][:-1])
    report = ReadReport()
    assert [each.sequence for each in read_records(tmp_path, report)] == [0, 2]
    assert report == ReadReport(records=2, damaged=2, unfinished=1)


def test_events_of_a_newer_writer_are_yielded_and_counted(tmp_path: Path) -> None:
    write(tmp_path, 0, to_line(record(1)).replace(b"StageStarted", b"MoonLanded"))
    report = ReadReport()
    assert len(list(read_records(tmp_path, report))) == 1
    assert report.unknown == 1


def test_a_line_of_endless_length_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_LONGEST_LINE", 1000)
    write(tmp_path, 0, to_line(record(1)) + b"x" * 3500 + b"\n" + to_line(record(2, sequence=1)))
    report = ReadReport()
    assert [each.sequence for each in read_records(tmp_path, report)] == [0, 1]
    assert report == ReadReport(records=2, damaged=1)


def test_an_empty_log_has_no_records(tmp_path: Path) -> None:
    write(tmp_path, 0, b"")
    assert list(read_records(tmp_path)) == []


def test_a_folder_without_a_log_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="no run log"):
        read_records(tmp_path / "nothing")


def watch(run: Path, turns: list[Callable[[], None]], report: ReadReport | None = None) -> list[list[int]]:
    """Follow the run; return the times seen before each wait, at which the next thing happens."""
    seen: list[int] = []
    batches: list[list[int]] = []
    left = iter(turns)

    def wait() -> None:
        batches.append(seen.copy())
        seen.clear()
        next(left)()

    for each in follow(run, lambda: len(batches) == len(turns), wait=wait, report=report):
        seen += [each.time_ns]
    return [*batches, seen]


def test_following_yields_what_is_new_and_finds_files_that_appear_later(tmp_path: Path) -> None:
    turns = [
        lambda: write(tmp_path, 0, to_line(record(1)) + to_line(record(2))),
        lambda: None,
        lambda: write(tmp_path, 1, to_line(record(3, rank=1))),
        lambda: append(tmp_path, 0, to_line(record(4))),
    ]
    assert watch(tmp_path, turns) == [[], [1, 2], [], [3], [4]]


def test_following_waits_for_the_end_of_a_line(tmp_path: Path) -> None:
    line = to_line(record(7))
    report = ReadReport()
    turns = [lambda: write(tmp_path, 0, line[:30]), lambda: append(tmp_path, 0, line[30:])]
    assert watch(tmp_path, turns, report) == [[], [], [7]]
    assert report.damaged == 0


def test_following_counts_a_torn_line_once_a_restarted_writer_has_ended_it(tmp_path: Path) -> None:
    report = ReadReport()
    turns = [
        lambda: write(tmp_path, 0, to_line(record(1))[:30]),
        lambda: append(tmp_path, 0, b"\n" + to_line(record(2))),
    ]
    assert watch(tmp_path, turns, report) == [[], [], [2]]
    assert report.damaged == 1


@pytest.mark.parametrize("count", [1, 2, 3])
def test_following_starts_again_when_a_file_is_truncated_or_replaced(tmp_path: Path, count: int) -> None:
    write(tmp_path, 0, to_line(record(11)) + to_line(record(12)))
    renewed = b"".join(to_line(record(20 + n)) for n in range(count))
    assert watch(tmp_path, [lambda: write(tmp_path, 0, renewed)]) == [
        [11, 12],
        [20 + n for n in range(count)],
    ]


def test_following_starts_again_when_a_file_has_lost_its_end(tmp_path: Path) -> None:
    lines = [to_line(record(n)) for n in range(9)]
    write(tmp_path, 0, b"".join(lines))
    assert watch(tmp_path, [lambda: write(tmp_path, 0, b"".join(lines[:4]))]) == [
        list(range(9)),
        list(range(4)),
    ]


def test_following_goes_on_in_a_longer_copy_with_a_new_inode(tmp_path: Path) -> None:
    write(tmp_path, 0, to_line(record(1)))

    def copy_again() -> None:
        RunLayout(tmp_path).rank_log(0).unlink()
        write(tmp_path, 0, to_line(record(1)) + to_line(record(2)))

    assert watch(tmp_path, [copy_again]) == [[1], [2]]


def test_following_survives_a_file_that_is_taken_away(tmp_path: Path) -> None:
    write(tmp_path, 0, to_line(record(1)))
    assert watch(tmp_path, [RunLayout(tmp_path).rank_log(0).unlink]) == [[1], []]


def test_following_passes_over_lines_that_are_not_wanted(tmp_path: Path) -> None:
    for rank in (0, 1):
        write(tmp_path, rank, to_line(record(rank, rank=rank)) + b"not a record\n")
    report = ReadReport()
    wanted = RunLayout(tmp_path).rank_log(1)
    found = follow(tmp_path, lambda: True, report=report, is_wanted=lambda path, _line: path == wanted)
    assert [each.rank for each in found] == [1]
    assert report == ReadReport(records=1, damaged=1)


def test_following_begins_where_it_is_told_to(tmp_path: Path) -> None:
    lines = [to_line(record(n)) for n in range(4)]
    for rank in (0, 1):
        write(tmp_path, rank, b"".join(lines))
    offsets = {RunLayout(tmp_path).rank_log(0): len(lines[0] + lines[1])}
    found = follow(tmp_path, lambda: True, offsets=offsets)
    assert [each.time_ns for each in found] == [0, 1, 2, 2, 3, 3]


def test_following_reads_a_file_whole_that_is_shorter_than_it_was(tmp_path: Path) -> None:
    write(tmp_path, 0, to_line(record(7)))
    found = follow(tmp_path, lambda: True, offsets={RunLayout(tmp_path).rank_log(0): 10_000})
    assert [each.time_ns for each in found] == [7]
