"""The report in the terminal: eleven answers within 80 columns, plain where the output is a file."""

from itertools import zip_longest
from textwrap import wrap

from rich.console import Console
from rich.text import Text

from tandem.observe.finding import Finding
from tandem.observe.report.gather import Report
from tandem.observe.report.quantity import evidence_text
from tandem.observe.report.summary import headline, notes
from tandem.observe.visible import visible

__all__ = ["render_report"]

INDENT, GAP = 4, 2
SHOWN_EVIDENCE = 5
LONGEST_TEXT = 60
LONGEST_NAME = 36
STYLES = {
    "yes": ("●", "bold cyan"),
    "no": ("○", "bold cyan"),
    "partly": ("◐", "bold cyan"),
    "measured": ("■", "bold cyan"),
    "cannot tell": ("?", "bold yellow"),
}
"""No red and no green: yes is good news to one question and bad news to another."""


def render_report(report: Report, console: Console) -> None:
    """Print the answers, each with the numbers it rests on and what to do about it."""
    series = report.series
    _print(Text(visible(series.name), "bold").append(f": {visible(headline(series))}", "not bold"), console)
    for note in notes(series):
        _print(Text(visible(note), "yellow"), console)
    for finding in report.findings:
        _print_finding(finding, console)


def _print(text: Text, console: Console, *, indent: int = 0) -> None:
    """A paragraph; no line has spaces at its end, which would be a nuisance in a file."""
    for line in text.wrap(console, max(20, console.width - indent)):
        line.rstrip()
        console.print(Text(" " * indent).append_text(line), no_wrap=True, crop=False)


def _print_finding(finding: Finding, console: Console) -> None:
    mark, style = STYLES[finding.verdict]
    console.print()
    _print(Text(f"{finding.number:>2}  ", "dim").append(visible(finding.question), "not dim bold"), console)
    verdict = Text(f"{mark} {finding.verdict}", style)
    if finding.confidence != "none":
        verdict.append(f"  {finding.confidence} confidence", "not bold dim")
    _print(verdict, console, indent=INDENT)
    _print(Text(visible(finding.answer)), console, indent=INDENT)
    _print_evidence(finding, console)
    lines = (("Do: ", finding.advice), ("Not measured: ", "; ".join(finding.missing)))
    for name, text in lines:
        if text:
            _print(Text(name, "dim").append(visible(text), "not dim"), console, indent=INDENT)


def _print_evidence(finding: Finding, console: Console) -> None:
    """The first numbers; long texts and the rest are for the page."""
    facts = [(visible(each.name), visible(evidence_text(each))) for each in finding.evidence]
    shown = [fact for fact in facts if len(fact[1]) <= LONGEST_TEXT][:SHOWN_EVIDENCE]
    width = min(LONGEST_NAME, max((len(name) for name, _ in shown), default=0))
    room = max(20, console.width - INDENT - GAP * 2 - width)
    for fact in shown:
        names, values = (wrap(text, cells) for text, cells in zip(fact, (width, room), strict=True))
        for name, value in zip_longest(names, values, fillvalue=""):
            line = Text(f"{name:<{width + GAP}}" if value else name, "dim").append(value, "not dim")
            console.print(Text(" " * (INDENT + GAP)).append_text(line), no_wrap=True, crop=False)
    if len(facts) > len(shown):
        _print(Text(f"and {len(facts) - len(shown)} more: --html", "dim"), console, indent=INDENT + GAP)
