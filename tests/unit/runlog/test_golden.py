"""A run log of schema 1, kept as it was written: killed, resumed, torn, with news of a newer writer."""

from pathlib import Path

from tandem.runlog.card import DataCard
from tandem.runlog.event import (
    BatchesPlanned,
    CheckpointRemoved,
    CheckpointWritten,
    DataPrepared,
    EvaluationFinished,
    EventsDropped,
    LossMeasured,
    RunFinished,
    RunStarted,
    StageFinished,
    StageStarted,
    StepFinished,
    TrainingStarted,
    TranslationScored,
    Unknown,
)
from tandem.runlog.reader import ReadReport, read_records

RUN = Path(__file__).parents[2] / "golden/runlog-v1"
TRAINING = Path(__file__).parents[2] / "golden/runlog-v1-training"


def test_the_records_come_in_the_same_order_with_the_same_damage_counted() -> None:
    report = ReadReport()
    found = [
        (record.rank if record.rank is not None else record.host, record.sequence, type(record.event))
        for record in read_records(RUN, report)
    ]
    assert found == [
        (0, 0, RunStarted),
        ("alpha", 0, StageStarted),
        (1, 0, Unknown),
        (0, 1, StageStarted),
        (0, 2, StageFinished),
        (0, 3, DataPrepared),
        (0, 4, BatchesPlanned),
        (1, 1, BatchesPlanned),
        (1, 2, RunFinished),
        (0, 5, EventsDropped),
        (0, 6, RunFinished),
    ]
    assert report == ReadReport(records=11, damaged=1, unfinished=1, unknown=1)


def test_every_value_reads_as_it_was_written() -> None:
    records = list(read_records(RUN))
    first, unknown, finished, planned, mood = (records[at] for at in (0, 2, 4, 7, 8))
    assert (first.time_ns, first.clock_s) == (1767225600000000000, 812.5)
    assert first.event == RunStarted(
        run="first",
        tandem="0.1.0",
        command=("tandem", "data", "prepare", "recipe.yaml"),
        recipe="9f86d081884c7d65",
        world_size=1,
        host="alpha",
        python="3.11.9",
        torch="",
    )
    assert unknown.event == Unknown(
        kind="MoonLanded", fields={"site": "Tranquillity", "craft": [1, None, {"x": "nan"}]}
    )
    assert finished.event == StageFinished(
        stage="clean", duration_s=2.5, counts={"read": 10000, "kept": 9876}, reused=False
    )
    assert isinstance(planned.event, BatchesPlanned)
    assert repr(planned.event.padding_share) == "nan"
    assert (mood.event, mood.extra) == (RunFinished(reason="finished"), {"mood": "good"})


def test_the_data_card_reads_as_it_was_written() -> None:
    (event,) = (r.event for r in read_records(RUN) if isinstance(r.event, DataPrepared))
    card = DataCard.from_json(event.card)
    assert card.languages.target == "de"
    assert card.lengths.source.edges == (8, 16)
    assert card.held_out[0].tokens.source == 2
    assert card.examples[0].target_pieces == ("ä",)


def test_a_training_that_was_resumed_reads_as_it_was_written() -> None:
    report = ReadReport()
    events = [record.event for record in read_records(TRAINING, report)]
    assert report == ReadReport(records=57)
    steps = [event for event in events if isinstance(event, StepFinished)]
    assert [event.step for event in steps] == list(range(1, 10))
    assert sum(event.target_tokens for event in steps) == 4685
    assert set(steps[0].phases) == {"data", "forward", "backward", "exchange", "optimizer", "other"}
    started = [event for event in events if isinstance(event, TrainingStarted)]
    assert [(event.step, event.resumed_from) for event in started] == [(0, ""), (6, "step-00000006")]
    scored = [event for event in events if isinstance(event, TranslationScored)]
    assert scored[0].hypotheses == "hypotheses/step-00000004/valid.txt"
    assert {CheckpointWritten, CheckpointRemoved, EvaluationFinished, LossMeasured} < set(map(type, events))
