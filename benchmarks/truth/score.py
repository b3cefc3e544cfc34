"""Holds answers against labels: right, declined, wrong, or wrong with confidence, which must never be."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from benchmarks.truth.labels import Label, Value

from tandem.observe.finding import Finding

__all__ = ["KEYS", "Outcome", "Row", "complaint", "confusion_table", "score_run", "tally"]

Outcome: TypeAlias = Literal["right", "declined", "wrong", "confidently wrong"]

KEYS = (
    "duration",
    "trained",
    "overfitting",
    "gpus",
    "network",
    "schedule",
    "data",
    "checkpoint_files",
    "checkpoint_size",
    "step_time",
    "step_network",
)
_VERDICTS = ("yes", "partly", "no", "measured", "cannot tell")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One answer about one run."""

    run: str
    kind: str
    """`simulated`, `imported` or `real`."""
    question: str
    accepted: str
    verdict: str
    confidence: str
    outcome: Outcome
    reason: str
    """Why it is not right; empty where it is."""
    answer: str


def score_run(run: str, kind: str, labels: Mapping[str, Label], findings: Iterable[Finding]) -> list[Row]:
    """Hold each answer that has a label against it."""
    return [_score(run, kind, labels[finding.key], finding) for finding in findings if finding.key in labels]


def _score(run: str, kind: str, label: Label, finding: Finding) -> Row:
    outcome, reason = _judge(label, finding)
    return Row(
        run=run,
        kind=kind,
        question=finding.key,
        accepted=" or ".join(each for each in _VERDICTS if each in label.verdicts),
        verdict=finding.verdict,
        confidence=finding.confidence,
        outcome=outcome,
        reason=reason,
        answer=finding.answer,
    )


def _judge(label: Label, finding: Finding) -> tuple[Outcome, str]:
    is_sure = finding.confidence in {"high", "medium"}
    if finding.verdict not in label.verdicts:
        if finding.verdict == "cannot tell":
            return "declined", "it could have been told"
        return "confidently wrong" if is_sure else "wrong", f"said {finding.verdict}"
    if finding.verdict == "cannot tell":
        return "right", ""
    reasons = [reason for value in label.values if (reason := _off(value, finding))]
    if not reasons:
        return "right", ""
    return "confidently wrong" if is_sure else "wrong", "; ".join(reasons)


def _off(value: Value, finding: Finding) -> str:
    found = [each.value for each in finding.evidence if each.name == value.name]
    if not found or not isinstance(found[0], int | float):
        return f"no number is called {value.name}"
    if math.isclose(found[0], value.truth, rel_tol=value.within, abs_tol=max(value.or_by, 1e-9)):
        return ""
    return f"{value.name} is {found[0]:g}, not {value.truth:g}"


def complaint(row: Row) -> str:
    """What was said, and what would have been right."""
    return (
        f"{row.outcome}: {row.run}, {row.question}: {row.reason}, {row.confidence} confidence; "
        f"right: {row.accepted}. It said: {row.answer}"
    )


def tally(rows: Sequence[Row]) -> Mapping[str, int]:
    """How many answers came out in each way."""
    counted = Counter(row.outcome for row in rows)
    return {name: counted[name] for name in ("right", "declined", "wrong", "confidently wrong")}


def confusion_table(rows: Sequence[Row]) -> str:
    """The table by question and right answer, as Markdown."""
    lines = [
        f"| question | right answer | {' | '.join(_VERDICTS)} | right | wrong with confidence |",
        f"|---|---|{'---:|' * (len(_VERDICTS) + 2)}",
    ]
    for key in KEYS:
        mine = [row for row in rows if row.question == key]
        lines += [
            _confusion_line(key, accepted, [row for row in mine if row.accepted == accepted])
            for accepted in sorted({row.accepted for row in mine})
        ]
    counts = tally(rows)
    blank = " |" * len(_VERDICTS)
    lines.append(f"| all | |{blank} {counts['right']} of {len(rows)} | {counts['confidently wrong']} |")
    return "\n".join(lines)


def _confusion_line(key: str, accepted: str, rows: Sequence[Row]) -> str:
    given = Counter(row.verdict for row in rows)
    counts = tally(rows)
    cells = " | ".join(str(given[verdict] or "") for verdict in _VERDICTS)
    return (
        f"| {key} | {accepted} | {cells} | {counts['right']} of {len(rows)} | {counts['confidently wrong']} |"
    )
