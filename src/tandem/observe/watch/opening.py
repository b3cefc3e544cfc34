"""Where a run stands at a first look, without reading all of its log."""

from collections.abc import Iterator
from pathlib import Path

from tandem.files import next_data
from tandem.observe.series.live import LiveSeries
from tandem.observe.watch.hosts import HELD_SAMPLES
from tandem.observe.watch.recent import STEPS
from tandem.observe.watch.standing import state_of
from tandem.observe.watch.state import WatchState
from tandem.runlog.layout import RunLayout, open_log
from tandem.runlog.record import Record, from_line

__all__ = ["open_run"]

END_BYTES = 2 << 20
"""Of the logs that are read from their end."""
_MOST_SEARCHED = 1 << 30
_LONGEST_LINE = 1 << 24
_STEP = b'"event":"StepFinished"'
_DESCRIBED = b'"event":"HostDescribed"'


def open_run(folder: Path) -> tuple[WatchState, dict[Path, int]]:
    """The state of a run, and the byte of each log file from which to follow it on.

    The steps are rank 0's. Of other ranks only the end is read: their last steps, and what but for old troubles is all.
    """
    if not any(RunLayout(folder).log.glob("*.jsonl")):
        return WatchState(run=folder.resolve().name), {}
    live = LiveSeries(folder)
    live.refresh(leader_only=True)
    state, offsets = state_of(live.series()), dict(live.offsets)
    state.run = folder.resolve().name
    read_whole = ("host-", RunLayout(folder).rank_log(0).name)
    for path in [path for path, offset in offsets.items() if not offset]:
        if path.name.startswith(read_whole):
            continue
        offsets[path], lines = _read_end(path)
        if path.name.startswith("samples-"):
            lines = _last_samples(path, lines[-HELD_SAMPLES:])
        for record in _records(_without_old_steps(lines)):
            state.apply(record)
    return state, offsets


def _last_samples(path: Path, lines: list[bytes]) -> list[bytes]:
    """Those that one description of the host holds for, which comes first."""
    starts = [number for number, line in enumerate(lines) if _DESCRIBED in line]
    return lines[starts[-1] :] if starts else [*_find_last(path, _DESCRIBED), *lines]


def _without_old_steps(lines: list[bytes]) -> list[bytes]:
    steps = [number for number, line in enumerate(lines) if _STEP in line]
    passed = set(steps[:-STEPS])
    return [line for number, line in enumerate(lines) if number not in passed]


def _records(lines: list[bytes]) -> Iterator[Record]:
    for line in lines:
        try:
            yield from_line(line)
        except ValueError:
            continue


def _read_end(path: Path) -> tuple[int, list[bytes]]:
    """The last whole lines of a file, and the byte behind them."""
    try:
        file = open_log(path)
    except FileNotFoundError:
        return 0, []
    with file:
        start = max(0, file.seek(0, 2) - END_BYTES)
        file.seek(start)
        data = file.read(END_BYTES)
    stop = data.rfind(b"\n") + 1
    # What stands before the first line end may be a part of a line.
    first = data.find(b"\n") + 1 if start else 0
    return start + stop, data[first:stop].splitlines(keepends=True)


def _find_last(path: Path, mark: bytes) -> list[bytes]:
    """The last line with this mark, if there is one; searched for from the end."""
    found: list[bytes] = []
    with open_log(path) as file:
        stop, later = file.seek(0, 2), b""
        # In most of a huge empty file nothing is looked for.
        least = max(0, stop - _MOST_SEARCHED)
        while stop > least and not found:
            start = max(0, stop - END_BYTES)
            if next_data(file, start) >= stop:
                stop, later = start, b""
                continue
            file.seek(start)
            # A line that lies across two blocks is whole in one of them and what follows.
            data = file.read(stop - start) + later
            lines = data.splitlines(keepends=True)
            found = [line for line in lines[1 if start else 0 :] if mark in line][-1:] if mark in data else []
            # What is longer than any line is none, and is not carried on from block to block.
            stop, later = start, lines[0] if lines and len(lines[0]) <= _LONGEST_LINE else b""
    return found
