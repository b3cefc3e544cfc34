import math

import pytest
from tests.unit.observe.story import Teller, started

from tandem.observe.watch.troubles import Troubles
from tandem.runlog.event import (
    BatchSplit,
    CheckpointFailed,
    CheckpointRejected,
    Event,
    EventsDropped,
    StageStarted,
    StopAsked,
    WorkersLost,
)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (
            BatchSplit(step=7, target_tokens=9, pieces=2),
            "batch of step 7 did not fit into memory: done in 2 pieces",
        ),
        (
            CheckpointFailed(step=1000, reason="disk full"),
            "checkpoint of step 1,000 could not be written: disk full",
        ),
        (CheckpointRejected(folder="checkpoints/x", reason="torn"), "checkpoints/x is not used: torn"),
        (
            WorkersLost(attempt=1, exit_code=-9, rank=2, reason="killed"),
            "rank 2 was lost at start 1: killed; all start again",
        ),
        (EventsDropped(count=1234, since_ns=0), "records missing from the log: 1,234"),
        (StopAsked(signal="SIGTERM"), "SIGTERM: stops after the step at hand"),
    ],
)
def test_each_kind_of_trouble_has_its_sentence(event: Event, text: str) -> None:
    assert str(Troubles().apply(Teller().tell(event))) == text


def test_the_same_trouble_again_is_counted_and_the_newest_is_last() -> None:
    troubles, teller = Troubles(), Teller()
    for step in (3, 8):
        troubles.apply(teller.step(step, loss=math.nan, skipped=True))
    troubles.apply(teller.tell(EventsDropped(count=1, since_ns=0)))
    troubles.apply(teller.step(9, loss=math.nan, skipped=True))
    assert [str(each) for each in troubles] == [
        "records missing from the log: 1",
        "step 9 skipped: its gradients were not finite (3 times so far)",
    ]


def test_what_every_rank_tells_alike_counts_once() -> None:
    troubles, teller = Troubles(), Teller()
    for rank in range(4):
        troubles.apply(teller.step(3, rank=rank, loss=math.nan, skipped=True))
        troubles.apply(teller.tell(StopAsked(signal="SIGINT"), rank=rank))
    assert [each.times for each in troubles] == [1, 1]


def test_what_one_rank_tells_counts_whatever_its_number() -> None:
    troubles, teller = Troubles(), Teller()
    troubles.apply(teller.tell(BatchSplit(step=7, target_tokens=9, pieces=2), rank=3))
    assert len(troubles) == 1


def test_a_wish_to_stop_is_past_once_training_starts_again() -> None:
    troubles, teller = Troubles(), Teller()
    troubles.apply(teller.tell(StopAsked(signal="SIGTERM")))
    troubles.apply(teller.tell(started(5)))
    assert len(troubles) == 0


def test_an_orderly_event_is_no_trouble() -> None:
    troubles, teller = Troubles(), Teller()
    assert troubles.apply(teller.step(3)) is None
    assert troubles.apply(teller.tell(StageStarted(stage="clean"))) is None
    assert list(troubles) == []


def test_a_note_counts_once_however_often_it_is_told() -> None:
    troubles = Troubles()
    troubles.note("no disk", time_ns=1)
    troubles.note("no disk", time_ns=2)
    assert [str(each) for each in troubles] == ["no disk"]
