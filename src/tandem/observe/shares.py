"""The parts of an update that ranks get, in words."""

from collections.abc import Iterable, Sequence
from math import isfinite

from tandem.observe.numbers import count, percent
from tandem.observe.series.columns import Marked
from tandem.runlog.event import SharesChanged, TrainingStarted

__all__ = ["brief_shares", "find_shares", "shares_sentence"]

_LISTED = 4
"""Ranks that are named one by one; of more, the least and the largest share are told."""
_ALIKE = 1e-3
"""Shares that differ by less are equal parts."""


def find_shares(marks: Iterable[Marked]) -> SharesChanged | None:
    """Return the last change of shares since training was last started; None if ranks have had equal parts since."""
    latest: SharesChanged | None = None
    for mark in marks:
        match mark.event:
            case TrainingStarted():
                latest = None
            case SharesChanged() as event if event.shares:
                latest = event
    return latest


def brief_shares(event: SharesChanged) -> str:
    """Return the shares in a few words: "shares 75 %, 25 %"."""
    shares = event.shares
    if not shares or max(shares) - min(shares) < _ALIKE:
        return "equal shares"
    if len(shares) <= _LISTED:
        return f"shares {', '.join(map(percent, shares))}"
    return f"shares from {percent(min(shares))} to {percent(max(shares))}"


def shares_sentence(event: SharesChanged) -> str:
    """Return who does which part of an update from which step on, and how fast each of them computes."""
    if not event.shares:
        return ""
    since = f"from step {count(event.first_step)} on"
    ranks: Sequence[int] = range(len(event.shares))
    if len(ranks) > _LISTED:
        ranks = (event.shares.index(max(event.shares)), event.shares.index(min(event.shares)))
        parts = " to ".join(_part(event, rank) for rank in ranks)
        return f"{since} ranks get different shares of an update, by their speed: {parts}"
    return f"{since} ranks share an update by their speed: {', '.join(_part(event, rank) for rank in ranks)}"


def _part(event: SharesChanged, rank: int) -> str:
    speed = event.tokens_per_s[rank] if rank < len(event.tokens_per_s) else float("nan")
    known = f" ({speed:,.0f} target tokens/s)" if isfinite(speed) else ""
    return f"rank {rank} {percent(event.shares[rank])}{known}"
