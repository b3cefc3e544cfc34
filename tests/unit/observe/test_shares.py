from dataclasses import replace

import pytest
from tests.unit.observe.story import started

from tandem.observe.series.columns import Marked
from tandem.observe.shares import brief_shares, find_shares, shares_sentence
from tandem.runlog.event import Event, SharesChanged

CHANGED = SharesChanged(
    step=40,
    first_step=1048,
    shares=(0.75, 0.25),
    tokens_per_s=(6144.0, 2048.0),
    fixed_s=(0.1, 0.1),
    window_steps=40,
)
NAN = float("nan")


def mark(*events: Event) -> list[Marked]:
    return [Marked(time_s=time_s, rank=0, host=None, event=event) for time_s, event in enumerate(events)]


def test_who_does_which_part_is_said_with_the_speeds() -> None:
    assert shares_sentence(CHANGED) == (
        "from step 1,048 on ranks share an update by their speed: rank 0 75.0 % (6,144 target tokens/s), "
        "rank 1 25.0 % (2,048 target tokens/s)"
    )
    assert brief_shares(CHANGED) == "shares 75.0 %, 25.0 %"


def test_of_many_ranks_the_extremes_are_told() -> None:
    many = replace(CHANGED, shares=(0.2, 0.3, 0.1, 0.2, 0.2), tokens_per_s=(NAN,) * 5)
    assert shares_sentence(many).endswith("by their speed: rank 1 30.0 % to rank 2 10.0 %")
    assert brief_shares(many) == "shares from 10.0 % to 30.0 %"


def test_equal_parts_are_called_so() -> None:
    assert brief_shares(replace(CHANGED, shares=(1 / 3,) * 3)) == "equal shares"
    assert brief_shares(replace(CHANGED, shares=())) == "equal shares"
    assert shares_sentence(replace(CHANGED, shares=())) == ""


@pytest.mark.parametrize("shares", [(NAN, 0.5), (float("inf"), -1.0), (NAN,) * 9])
def test_shares_that_cannot_be_stop_no_reader(shares: tuple[float, ...]) -> None:
    assert shares_sentence(replace(CHANGED, shares=shares, tokens_per_s=()))
    assert brief_shares(replace(CHANGED, shares=shares))


def test_the_last_change_holds_until_training_starts_anew() -> None:
    later = replace(CHANGED, first_step=2000)
    assert find_shares(mark(started(), CHANGED, later)) == later
    assert find_shares(mark(started(), CHANGED, started(400))) is None
    assert find_shares(mark(started(400), later)) == later
