"""The report as Markdown, to be pasted into an issue or a message."""

import re

from tandem.observe.finding import Finding
from tandem.observe.report.gather import Report
from tandem.observe.report.quantity import evidence_text
from tandem.observe.report.summary import checkpoints_table, evaluations_table, headline, notes
from tandem.observe.tabular import Table
from tandem.observe.visible import visible

__all__ = ["report_markdown"]


def report_markdown(report: Report) -> str:
    """The answers with their evidence, the evaluations and the checkpoints."""
    series = report.series
    blocks = [f"# {_text(series.name)}", _text(headline(series)), *map(_text, notes(series))]
    for finding in report.findings:
        blocks += _finding(finding)
    blocks += [
        _table(table) for table in (evaluations_table(series), checkpoints_table(series)) if table.rows
    ]
    return "\n\n".join(blocks) + "\n"


def _finding(finding: Finding) -> list[str]:
    sure = "" if finding.confidence == "none" else f" ({finding.confidence} confidence)"
    blocks = [
        f"## {finding.number}. {_text(finding.question)}",
        f"**{finding.verdict}**{sure}: {_text(finding.answer)}",
    ]
    if finding.evidence:
        rows = tuple((each.name, evidence_text(each), each.definition) for each in finding.evidence)
        blocks.append(_rows(("measure", "value", "definition"), rows))
    if finding.doubt:
        blocks.append(f"Why not surer: {_text(finding.doubt)}")
    if finding.advice:
        blocks.append(f"Advice: {_text(finding.advice)}")
    if finding.would_change:
        blocks.append(f"What would change this: {_text(finding.would_change)}")
    if finding.missing:
        blocks.append(f"Not measured: {_text('; '.join(finding.missing))}")
    return blocks


def _table(table: Table) -> str:
    note = f"\n\n{_text(table.note)}" if table.note else ""
    return f"## {_text(table.title)}\n\n{_rows(table.columns, table.rows)}{note}"


def _rows(columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> str:
    lines = [columns, tuple("---" for _ in columns), *rows]
    return "\n".join(f"| {' | '.join(_text(cell) for cell in line)} |" for line in lines)


def _text(text: str) -> str:
    """Text that stays text: what Markdown or HTML would take for a sign is escaped."""
    return re.sub(r"([\\`*_\[\]<>|#&])", r"\\\1", visible(text))
