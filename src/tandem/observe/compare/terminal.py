"""A comparison in the terminal: all answers in one table, why they are so, the curves, then what differs."""

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tandem.observe.compare.comparison import Comparison
from tandem.observe.compare.curves import curve_lines
from tandem.observe.compare.differences import UNKNOWN, Differences
from tandem.observe.compare.judgement import Judgement, short
from tandem.observe.visible import visible

__all__ = ["render_comparison"]

STYLES = {
    "better": ("●", "bold cyan"),
    "inside noise": ("≈", "bold cyan"),
    "cannot tell": ("?", "bold yellow"),
}
INDENT = 4
WORSE = " ▼"
LEFT_OUT = " ?"


def render_comparison(comparison: Comparison, console: Console) -> None:
    """Print what was found, plain where the output is a file."""
    names = list(comparison.named)
    for name, line in zip(names, comparison.headlines, strict=True):
        _print(Text(visible(name), "bold").append(f": {visible(line)}", "not bold"), console)
    for note in comparison.notes:
        _print(Text(visible(note), "yellow"), console)
    of_runs = [each for each in comparison.judgements if not each.question.is_of_recipes]
    _print_answers(of_runs, names, console)
    for judgement in comparison.judgements:
        if judgement.question.is_of_recipes:
            _print_sentence(judgement, console)
    _print_reasons(of_runs, console)
    _print_curves(comparison, console)
    for respect in comparison.differences:
        _print_differences(respect, names, console)


def _print(text: Text, console: Console, *, indent: int = 0) -> None:
    """A paragraph; no line has spaces at its end, which would be a nuisance in a file."""
    for line in text.wrap(console, max(20, console.width - indent)):
        line.rstrip()
        console.print(Text(" " * indent).append_text(line), no_wrap=True, crop=False)


def _print_answers(judgements: Iterable[Judgement], names: Sequence[str], console: Console) -> None:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for name in names:
        table.add_column(Text(visible(name)), justify="right", overflow="fold")
    table.add_column("better")
    shown = list(judgements)
    for judgement in shown:
        mark, style = STYLES[judgement.verdict]
        held = {
            value.run: short(judgement.question, value)
            + WORSE * (value.run in judgement.worse)
            + LEFT_OUT * (value.run in judgement.left_out)
            for value in judgement.values
        }
        verdict = Text(f"{mark} {visible(judgement.better or judgement.verdict)}", style)
        table.add_row(
            Text(visible(judgement.question.title)),
            *(Text(held.get(name, UNKNOWN)) for name in names),
            verdict,
        )
    console.print(table)
    _print(Text(f"{WORSE.strip()} worse than the best in its row, by more than noise", "dim"), console)
    if any(judgement.left_out for judgement in shown):
        _print(Text(f"{LEFT_OUT.strip()} left out: cannot be compared with the others", "dim"), console)


def _print_sentence(judgement: Judgement, console: Console) -> None:
    mark, style = STYLES[judgement.verdict]
    _print(Text(visible(judgement.question.title), "bold"), console)
    _print(
        Text(f"{mark} {judgement.verdict}: ", style).append(visible(judgement.answer), ""),
        console,
        indent=INDENT,
    )
    if judgement.why:
        _print(Text(visible(judgement.why), "dim"), console, indent=INDENT)


def _print_reasons(judgements: Iterable[Judgement], console: Console) -> None:
    """Why the answers are what they are, each reason once."""
    reasons: dict[str, list[str]] = {}
    for judgement in judgements:
        why = judgement.why or (judgement.answer if judgement.verdict == "cannot tell" else "")
        if why:
            reasons.setdefault(why, []).append(judgement.question.title)
    for why, titles in reasons.items():
        _print(Text(visible("; ".join(titles)), "dim"), console)
        _print(Text(visible(why)), console, indent=INDENT)


def _print_curves(comparison: Comparison, console: Console) -> None:
    """Below one another on one axis, the value at the beginning and at the end of each beside it."""
    lines = curve_lines(comparison.named, width=console.width, ascii_only=console.options.ascii_only)
    for number, line in enumerate(lines):
        if number == 0:
            console.print()
        console.print(line, no_wrap=True, crop=False)


def _print_differences(respect: Differences, names: Sequence[str], console: Console) -> None:
    console.print()
    _print(
        Text(f"{respect.title}: what differs", "bold").append(f"  ({respect.same} alike)", "not bold dim"),
        console,
    )
    if respect.untold:
        _print(Text(f"Not known of {visible(', '.join(respect.untold))}.", "dim"), console, indent=INDENT)
    if not respect.rows:
        _print(Text("No difference is known.", "dim"), console, indent=INDENT)
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("", *names):
        table.add_column(Text(visible(name)), overflow="fold")
    for row in respect.rows:
        table.add_row(Text(visible(row.key)), *(Text(visible(value)) for value in row.values))
    console.print(table)
