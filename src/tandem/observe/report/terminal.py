"""The report in the terminal: eleven answers within 80 columns, plain where the output is a file."""

import re
from itertools import zip_longest
from textwrap import wrap

from rich.console import Console
from rich.text import Text

from tandem.observe.finding import Evidence, Finding, Question
from tandem.observe.report.gather import Report
from tandem.observe.report.quantity import evidence_text
from tandem.observe.report.summary import headline, notes
from tandem.observe.verdicts.sections import section_text
from tandem.observe.visible import visible

__all__ = ["render_explanation", "render_question", "render_report"]

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
    if keys := ", ".join(each.section for each in report.findings if each.section):
        console.print()
        _print(Text(f"What each means and how it is judged: --explain QUESTION ({keys})", "dim"), console)


def render_explanation(finding: Finding, console: Console) -> None:
    """Print one answer with what the question means, all that the answer rests on, and how it is judged."""
    _print_ruling(finding, console)
    _print_counsel(finding, console)
    _print_titled("What is this?", finding.about, console)
    if finding.evidence:
        _print_title("What it rests on", console)
    for each in finding.evidence:
        _print_fact(each, console)
    _print_titled("What would change this", finding.would_change, console)
    _print_titled("How it is judged", section_text(finding.section), console)


def render_question(question: Question, console: Console) -> None:
    """Print what a question means and how it is judged, of no run."""
    _print_asked(question.number, question.question, console)
    _print_titled("What is this?", question.about, console)
    _print_titled("How it is judged", section_text(question.key), console)


def _print_asked(number: int, question: str, console: Console) -> None:
    _print(Text(f"{number:>2}  ", "dim").append(visible(question), "not dim bold"), console)


def _print_title(title: str, console: Console) -> None:
    console.print()
    _print(Text(title, "bold"), console, indent=INDENT)


def _print_titled(title: str, markdown: str, console: Console) -> None:
    """A title, and paragraphs and lists below it, each of their lines as long as there is room."""
    _print_title(title, console)
    for number, block in enumerate(markdown.split("\n\n")):
        if number:
            console.print()
        for item in re.split(r"\n(?=- )", block):
            _print(Text(visible(" ".join(item.split()))), console, indent=INDENT)


def _print_fact(evidence: Evidence, console: Console) -> None:
    fact = Text(f"{visible(evidence.name)}: ", "dim").append(visible(evidence_text(evidence)), "not dim")
    _print(fact, console, indent=INDENT)
    _print(Text(visible(evidence.definition), "dim"), console, indent=2 * INDENT)


def _print(text: Text, console: Console, *, indent: int = 0) -> None:
    """A paragraph; no line has spaces at its end, which would be a nuisance in a file."""
    for line in text.wrap(console, max(20, console.width - indent)):
        line.rstrip()
        console.print(Text(" " * indent).append_text(line), no_wrap=True, crop=False)


def _print_finding(finding: Finding, console: Console) -> None:
    console.print()
    _print_ruling(finding, console)
    _print_evidence(finding, console)
    _print_counsel(finding, console)


def _print_ruling(finding: Finding, console: Console) -> None:
    mark, style = STYLES[finding.verdict]
    _print_asked(finding.number, finding.question, console)
    verdict = Text(f"{mark} {finding.verdict}", style)
    if finding.confidence != "none":
        verdict.append(f"  {finding.confidence} confidence", "not bold dim")
    _print(verdict, console, indent=INDENT)
    _print(Text(visible(finding.answer)), console, indent=INDENT)


def _print_counsel(finding: Finding, console: Console) -> None:
    lines = (
        ("Why not surer: ", finding.doubt),
        ("Do: ", finding.advice),
        ("Not measured: ", "; ".join(finding.missing)),
    )
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
        where = f"--explain {finding.section}" if finding.section else "--html"
        _print(Text(f"and {len(facts) - len(shown)} more: {where}", "dim"), console, indent=INDENT + GAP)
