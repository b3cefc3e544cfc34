"""Rare events in words: each kind has a sentence or a reason to have none."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.observe.story import Teller, checkpoint, started, step_event

from tandem.observe.dashboard.sentences import LONGEST, log_line
from tandem.runlog.event import (
    EVENTS,
    CheckpointFailed,
    DataPrepared,
    Event,
    ExchangeProbed,
    HostDescribed,
    HostSampled,
    LossMeasured,
    RunFinished,
    SampleTranslated,
    ScoreImported,
    StepFinished,
    StopAsked,
    TranslationScored,
)

UNTOLD = {
    DataPrepared,
    ExchangeProbed,
    HostSampled,
    LossMeasured,
    SampleTranslated,
    ScoreImported,
    StepFinished,
    TranslationScored,
}
"""They are shown in figures and tables."""

VALUES: Mapping[Any, Any] = {
    str: "x",
    int: 1,
    float: math.nan,
    bool: False,
    tuple[str, ...]: ("a",),
    tuple[int, ...]: (1,),
    tuple[float, ...]: (1.0,),
}


def any_of(kind: type[Event]) -> Event:
    return kind(**{each.name: VALUES.get(each.type, {}) for each in dataclasses.fields(kind)})


def line_of(event: Event, *, rank: int | None = 0) -> Any:
    return log_line(Teller().tell(event, rank=rank))


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_every_kind_of_event_has_its_line_or_is_shown_elsewhere(kind: type[Event]) -> None:
    line = line_of(any_of(kind))
    assert (line is None) == (kind in UNTOLD)
    assert line is None or (line["kind"] == kind.__name__ and line["text"])


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (started(), "training starts: 60.9 million parameters, 2 ranks, cuda bf16"),
        (started(200), "training goes on after step 200 from checkpoints/step-00000200: 2 ranks, cuda bf16"),
        (checkpoint(200), "checkpoint checkpoints/step-00000200: 730.6 MB in 2.50 s, training waited 500 ms"),
        (
            CheckpointFailed(step=7, reason="disk full"),
            "checkpoint of step 7 could not be written: disk full",
        ),
        (RunFinished(reason="completed"), "the run ended: completed"),
    ],
)
def test_a_line_says_what_happened(event: Event, says: str) -> None:
    assert line_of(event)["text"] == says


def test_a_line_names_its_writer() -> None:
    line = line_of(RunFinished(reason="completed"), rank=None)
    assert (line["host"], line["rank"]) == ("alpha", None)
    line = line_of(RunFinished(reason="completed"), rank=3)
    assert (line["host"], line["rank"]) == (None, 3)


def test_what_every_rank_tells_alike_is_told_once() -> None:
    assert line_of(StopAsked(signal="SIGTERM"), rank=0) is not None
    assert line_of(StopAsked(signal="SIGTERM"), rank=1) is None
    assert line_of(step_event(1, skipped=True)) is None


def test_a_line_is_legible_and_bounded() -> None:
    line = line_of(RunFinished(reason="\x1b[2J" + "x" * 10_000))
    assert line["text"].startswith("the run ended: \\x1b[2Jx")
    assert len(line["text"]) == LONGEST


def test_a_host_is_described_in_short() -> None:
    described = HostDescribed(
        cores=8,
        memory_bytes=1,
        gpus=("H100", "H100"),
        gpu_memory_bytes=(1, 1),
        gpu_power_limit_w=(1.0, 1.0),
        interfaces=("lo", "eth0"),
        interface_bits_per_s=(0, 1),
        disk="",
    )
    assert line_of(described)["text"] == "sampling begins: 2 × H100, interfaces lo, eth0"
