"""The report as JSON, for machines; docs/report.md describes each field."""

from dataclasses import asdict

from tandem import __version__
from tandem.artefact import JsonValue
from tandem.observe.report.gather import Report
from tandem.observe.report.strict import strict_json
from tandem.observe.report.summary import has_clock
from tandem.observe.series.columns import Checkpoint, Evaluation, HostSamples, Series

__all__ = ["SCHEMA_VERSION", "report_document"]

SCHEMA_VERSION = 1
_UNKNOWN_IF_EMPTY = ("valid_tokens", "probe_tokens", "bleu_signature", "sentences", "hypotheses")
"""Of an evaluation: nothing was measured where they are 0 or empty."""


def report_document(report: Report) -> dict[str, JsonValue]:
    """The report's numbers; what is not known is null."""
    series = report.series
    document = {
        "version": SCHEMA_VERSION,
        "tandem": __version__,
        "run": _run(series),
        "findings": [asdict(finding) for finding in report.findings],
        "evaluations": [_evaluation(each, series) for each in series.evaluations],
        "checkpoints": [_checkpoint(each, series) for each in series.checkpoints],
        "hosts": {host: _host(samples) for host, samples in series.samples.items()},
        "links": [asdict(link) for link in series.links],
        "processes": [asdict(process) for process in series.processes],
        "recipe": series.recipe,
        "data_card": None if series.card is None else series.card.to_json(),
    }
    return {name: strict_json(value) for name, value in document.items()}


def _run(series: Series) -> dict[str, object]:
    steps, started = series.steps, series.started
    tokens = int(steps.target_tokens.sum())
    return {
        "name": series.name,
        "begun_ns": _timed(series.begun_ns, series),
        "seconds": _timed(series.end_s, series),
        "is_closed": series.is_closed,
        "ended": series.ended,
        "imported": None if series.imported is None else asdict(series.imported),
        "steps": int(steps.step[-1]) if len(steps) else 0,
        "target_tokens": tokens if series.imported is None else tokens or None,
        "ranks": _ranks(series) or None,
        "parameters": (started.parameters or None) if started is not None else None,
        "device": (started.device or None) if started is not None else None,
        "precision": (started.precision or None) if started is not None else None,
        "starts": len(series.starts),
        "redone_steps": series.redone_steps,
        "damaged_lines": series.damaged,
        "dropped_events": series.dropped,
    }


def _ranks(series: Series) -> int:
    told = series.started.ranks if series.started is not None else 0
    # The log of an imported run has one writer, however many ranks trained.
    return told if series.imported is not None else max(told, series.ranks.ranks)


def _timed(value: float, series: Series) -> float | None:
    """A time by the clock; null where the log was imported from files without one."""
    return value if has_clock(series) else None


def _evaluation(each: Evaluation, series: Series) -> dict[str, object]:
    held = asdict(each)
    known = {name: held[name] or None for name in _UNKNOWN_IF_EMPTY}
    return {**held, **known, "time_s": _timed(each.time_s, series)}


def _checkpoint(each: Checkpoint, series: Series) -> dict[str, object]:
    held = {**asdict(each), "time_s": _timed(each.time_s, series)}
    if series.imported is None:
        return held
    return {
        **held,
        "bytes": each.bytes or None,
        "files": each.files or None,
        "is_removed": each.is_removed or None,
        "is_rejected": each.is_rejected or None,
    }


def _host(samples: HostSamples) -> dict[str, object]:
    """What the sampler found; whole numbers that it did not know are negative there."""
    found = asdict(samples.described)
    sizes = [size if size >= 0 else None for size in samples.described.gpu_memory_bytes]
    known = {name: found[name] if found[name] >= 0 else None for name in ("cores", "memory_bytes")}
    return {**found, **known, "gpu_memory_bytes": sizes}
