"""What is lost of a log after it was written, or while it was."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from benchmarks.truth.world.history import History

from tandem.runlog.event import EventsDropped
from tandem.runlog.layout import RunLayout
from tandem.runlog.record import from_line, to_line

__all__ = ["injected_damage", "spoil"]


def spoil(history: History, rank: int | None, times: list[float], lines: list[bytes]) -> list[bytes]:
    """The lines of one file as they are left; none where the file is missing altogether."""
    evidence, seed = history.world.evidence, history.world.seed
    if rank is None:
        return lines
    if rank in evidence.lost_ranks:
        return []
    for number, share in evidence.cut_ranks:
        if number == rank:
            lines = lines[: int(np.searchsorted(times, share * history.wall_s))]
    if evidence.dropped is not None and evidence.dropped[0] == rank:
        lines = _without_dropped(lines, *evidence.dropped[1:])
    if evidence.doubled is not None and evidence.doubled[0] == rank:
        at = len(lines) // 3
        block = lines[at : at + evidence.doubled[1]]
        lines = [*lines[: at + len(block)], *block, *lines[at + len(block) :]]
    rng = np.random.default_rng([seed, 5])
    if rank == 0:
        for at in _torn_places(history, len(lines), rng):
            # The next writer ends the torn line before it goes on.
            lines[at] = lines[at][: len(lines[at]) // 2] + b"\n"
    if rank == history.world.starts[0].ranks - 1 and evidence.ends_inside_line and lines:
        lines = [*lines[:-1], lines[-1][: len(lines[-1]) // 3]]
    return lines


def _without_dropped(lines: list[bytes], share: float, count: int) -> list[bytes]:
    """The log of a rank whose disk refused some lines, and which then said so."""
    first = int(share * len(lines))
    last = min(first + count, len(lines) - 1)
    if last <= first:
        return lines
    records = [from_line(line) for line in lines[last:]]
    refused = EventsDropped(count=last - first, since_ns=from_line(lines[first]).time_ns)
    said = replace(records[0], event=refused, sequence=records[0].sequence - (last - first))
    later = [replace(record, sequence=record.sequence - (last - first) + 1) for record in records]
    return [*lines[:first], to_line(said), *map(to_line, later)]


def _torn_places(history: History, count: int, rng: np.random.Generator) -> list[int]:
    torn = _torn_count(history, count)
    return (
        sorted(int(at) for at in rng.choice(np.arange(5, max(count, 6)), torn, replace=False)) if torn else []
    )


def injected_damage(history: History, folder: Path) -> int:
    """How many lines of the log in a written folder are spoilt."""
    path = RunLayout(folder).rank_log(0)
    return _torn_count(history, path.read_bytes().count(b"\n"))


def _torn_count(history: History, count: int) -> int:
    return min(history.world.evidence.torn_lines, count // 20)
