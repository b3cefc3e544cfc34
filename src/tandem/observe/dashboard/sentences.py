"""The event log: rare events of a run in words, one line each."""

from collections.abc import Callable, Mapping
from typing import Any

from tandem.artefact import JsonValue
from tandem.observe.exchange_mode import describe_mode, describe_residuals
from tandem.observe.numbers import count, megabytes, short_count
from tandem.observe.report.quantity import quantity
from tandem.observe.shares import shares_sentence
from tandem.observe.visible import visible
from tandem.observe.watch.troubles import Troubles
from tandem.runlog.event import (
    BatchesPlanned,
    BatchFitted,
    CheckpointRemoved,
    CheckpointWritten,
    DeviceMeasured,
    EvaluationFinished,
    EvaluationStarted,
    Event,
    ExchangeChosen,
    HostDescribed,
    HostExamined,
    LinkMeasured,
    ResidualsRestored,
    RoundStarted,
    RunFinished,
    RunImported,
    RunStarted,
    SharesChanged,
    StageFinished,
    StageStarted,
    StepFinished,
    TrainingFinished,
    TrainingStarted,
)
from tandem.runlog.record import Record

__all__ = ["log_line"]

LONGEST = 500
"""Characters of a line."""


def log_line(record: Record) -> JsonValue:
    """The record as a line of the event log; None where it has none, as a step or a sample."""
    text = _sentence(record)
    if not text:
        return None
    return {
        "time_ns": record.time_ns,
        "host": None if record.host is None else visible(record.host),
        "rank": record.rank,
        "kind": type(record.event).__name__,
        "text": visible(text)[:LONGEST],
    }


def _sentence(record: Record) -> str:
    say = _SENTENCES.get(type(record.event))
    if say is not None:
        return say(record.event)
    # Troubles have their sentence already; skipped steps are counted, not listed.
    trouble = None if isinstance(record.event, StepFinished) else Troubles().apply(record)
    return trouble.text if trouble is not None else ""


def _examined(event: HostExamined) -> str:
    gpus = f", {len(event.gpus)} × {event.gpus[0]}" if event.gpus else ""
    return f"{event.host} was looked at: {count(event.cores)} cores, {megabytes(event.memory_bytes)} of memory{gpus}"


def _measured_link(event: LinkMeasured) -> str:
    if event.connection != "open":
        return f"{event.sender} cannot reach {event.receiver}: {event.connection}"
    rate = quantity(8 * event.bytes_per_s, "bits/s")
    return f"link from {event.sender} to {event.receiver}: {rate}, {quantity(event.latency_s, 's')} there and back"


def _described(event: HostDescribed) -> str:
    gpus = f"{len(event.gpus)} × {event.gpus[0]}" if event.gpus else "no GPU"
    return f"sampling begins: {gpus}, interfaces {', '.join(event.interfaces) or 'none'}"


def _started_round(event: RoundStarted) -> str:
    workers = ", ".join(f"{host} ({count(number)})" for host, number in event.workers.items())
    return f"start {event.round} of the ranks: {workers}"


def _started(event: TrainingStarted) -> str:
    with_what = f"{count(event.ranks)} ranks, {event.device} {event.precision}"
    if event.resumed_from:
        return f"training goes on after step {count(event.step)} from {event.resumed_from}: {with_what}"
    return f"training starts: {short_count(event.parameters)} parameters, {with_what}"


def _evaluated(event: EvaluationFinished) -> str:
    best = [name for name, flag in (("loss", event.is_best_loss), ("BLEU", event.is_best_bleu)) if flag]
    praise = f": best {' and '.join(best)} so far" if best else ""
    return f"evaluated at step {count(event.step)} in {quantity(event.duration_s, 's')}{praise}"


def _written(event: CheckpointWritten) -> str:
    waited = f"training waited {quantity(event.blocked_s, 's')}"
    return f"checkpoint {event.folder}: {megabytes(event.bytes)} in {quantity(event.write_s, 's')}, {waited}"


def _finished_stage(event: StageFinished) -> str:
    how = "found ready" if event.reused else f"done in {quantity(event.duration_s, 's')}"
    return f"preparing data: {event.stage} {how}"


_SENTENCES: Mapping[type[Event], Callable[[Any], str]] = {
    RunStarted: lambda event: (
        f"the run starts with Tandem {event.tandem} on {event.host}: {' '.join(event.command)}"
    ),
    RunImported: lambda event: f"imported from {event.tool}: {', '.join(event.files)}",
    HostExamined: _examined,
    LinkMeasured: _measured_link,
    RoundStarted: _started_round,
    HostDescribed: _described,
    StageStarted: lambda event: f"preparing data: {event.stage}",
    StageFinished: _finished_stage,
    BatchesPlanned: lambda event: (
        f"an epoch is {count(event.updates_per_epoch)} updates of {count(event.pairs)} pairs"
    ),
    BatchFitted: lambda event: (
        f"batches of {count(event.target_tokens)} target tokens fit into {megabytes(event.memory_bytes)}"
    ),
    DeviceMeasured: lambda event: (
        f"{event.device} multiplies at {quantity(event.flops_per_s, 'flop/s')} in {event.precision}"
    ),
    TrainingStarted: _started,
    ExchangeChosen: describe_mode,
    ResidualsRestored: lambda event: describe_residuals(event) or "residuals of encoded gradients go on",
    SharesChanged: shares_sentence,
    EvaluationStarted: lambda event: f"evaluation after step {count(event.step)} begins",
    EvaluationFinished: _evaluated,
    CheckpointWritten: _written,
    CheckpointRemoved: lambda event: f"checkpoint {event.folder} removed",
    TrainingFinished: lambda event: f"training finished at step {count(event.step)}: {event.reason}",
    RunFinished: lambda event: f"the run ended: {event.reason}",
}
