"""The report as JSON, for machines; docs/report.md describes each field."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np

from tandem import __version__
from tandem.artefact import JsonValue
from tandem.observe.report.gather import Report
from tandem.observe.series.columns import Series

__all__ = ["SCHEMA_VERSION", "report_document"]

SCHEMA_VERSION = 1


def report_document(report: Report) -> dict[str, JsonValue]:
    """The report's numbers; what is not known is null."""
    series = report.series
    document = {
        "version": SCHEMA_VERSION,
        "tandem": __version__,
        "run": _run(series),
        "findings": [asdict(finding) for finding in report.findings],
        "evaluations": [asdict(each) for each in series.evaluations],
        "checkpoints": [asdict(each) for each in series.checkpoints],
        "hosts": {host: asdict(samples.described) for host, samples in series.samples.items()},
        "links": [asdict(link) for link in series.links],
        "processes": [asdict(process) for process in series.processes],
        "recipe": series.recipe,
        "data_card": None if series.card is None else series.card.to_json(),
    }
    return {name: _json(value) for name, value in document.items()}


def _run(series: Series) -> dict[str, object]:
    steps, started = series.steps, series.started
    return {
        "name": series.name,
        "begun_ns": series.begun_ns,
        "seconds": series.end_s,
        "is_closed": series.is_closed,
        "ended": series.ended,
        "imported": None if series.imported is None else asdict(series.imported),
        "steps": int(steps.step[-1]) if len(steps) else 0,
        "target_tokens": int(steps.target_tokens.sum()),
        "ranks": series.ranks.ranks,
        "parameters": started.parameters if started is not None else None,
        "device": started.device if started is not None else None,
        "precision": started.precision if started is not None else None,
        "starts": len(series.starts),
        "redone_steps": series.redone_steps,
        "damaged_lines": series.damaged,
        "dropped_events": series.dropped,
    }


def _json(value: object) -> JsonValue:
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _json(each) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [_json(each) for each in value]
    return str(value)
