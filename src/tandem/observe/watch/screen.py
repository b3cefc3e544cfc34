"""The display of a run on a terminal, made to fit its width and height."""

from collections import Counter
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tandem.observe.numbers import count, duration, short_count
from tandem.observe.visible import visible
from tandem.observe.watch.chart import draw_chart
from tandem.observe.watch.progress import Progress, is_silent, progress_of, status
from tandem.observe.watch.state import WatchState
from tandem.observe.watch.tables import (
    NARROW,
    evaluations_table,
    phases_bar,
    phases_legend,
    samples_table,
)
from tandem.observe.watch.troubles import Trouble

__all__ = ["Screen"]

WIDE = 120
"""From here on, samples stand beside the evaluations."""
HEAD_ROWS = 5
GUTTER = 11
NANO = 1_000_000_000
STATUS_STYLES = {"training": "green", "evaluating": "cyan", "finished": "bold green", "restarting": "yellow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """A picture of the state at a moment, for a terminal of so many rows."""

    state: WatchState
    now_ns: int
    rows: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw within the width that is given."""
        state, width = self.state, options.max_width
        plan = _plan(state, rows=self.rows, width=width)
        parts: list[RenderableType] = [
            _title(state, self.now_ns),
            _bar(state, self.now_ns),
            "",
            _figures(state, width=width),
        ]
        newest = list(state.troubles)[::-1][: plan["troubles"]]
        parts += [_trouble(each, self.now_ns) for each in newest]
        if plan["chart"]:
            parts += ["", *_chart(state, plan["chart"], width=width, ascii_only=options.ascii_only)]
        if plan["phases"]:
            phases = state.recent.phases
            bar = phases_bar(phases, width=width, ascii_only=options.ascii_only)
            parts += ["", bar, phases_legend(phases)]
        if plan["evaluations"] or plan["samples"]:
            parts += ["", _results(state, plan, width=width)]
        yield Group(*parts)


def _plan(state: WatchState, *, rows: int, width: int) -> Counter[str]:
    """Share the rows out: what matters most comes first, and what is left over makes it longer."""
    evaluations, samples, has_steps = (
        len(state.evaluations),
        3 * len(state.samples),
        state.recent.last is not None,
    )
    beside = width >= WIDE
    if beside:
        evaluations, samples = max(evaluations, samples - 1), 0
    wishes = [
        ("troubles", min(len(state.troubles), max(1, rows // 8)), 0, 1),
        ("evaluations", min(evaluations, 3), 2, 1),
        ("chart", 2 * has_steps, 1, 1),
        ("samples", min(samples, 3), 1, 3),
        ("phases", 2 * has_steps, 1, 2),
        ("evaluations", min(evaluations, 12) - 3, 0, 1),
        ("samples", min(samples, 9) - 3, 0, 3),
        ("chart", 2 * has_steps, 0, 1),
    ]
    plan: Counter[str] = Counter()
    left = rows - HEAD_ROWS
    for name, wanted, frame, unit in wishes:
        given = min(wanted, left - frame) // unit * unit
        if given > 0:
            plan[name] += given
            left -= given + frame
    if beside and plan["evaluations"]:
        plan["samples"] = plan["evaluations"] + 1
    return plan


def _title(state: WatchState, now_ns: int) -> RenderableType:
    style = "bold red" if is_silent(state, now_ns=now_ns) else STATUS_STYLES.get(state.doing, "")
    title = Text.assemble(
        (visible(state.run or "run"), "bold"), " · ", (visible(status(state, now_ns=now_ns)), style)
    )
    grid = Table.grid(expand=True, padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, justify="right", ratio=1, style="dim", overflow="ellipsis")
    grid.add_row(title, _equipment(state))
    return grid


def _equipment(state: WatchState) -> str:
    started = state.started
    if started is None:
        return ""
    ranks = f"{started.ranks} rank{'s' if started.ranks > 1 else ''}"
    parameters = f"{short_count(started.parameters)} parameters"
    return visible(f"{ranks}, {started.device} {started.precision} · {parameters}")


def _bar(state: WatchState, now_ns: int) -> RenderableType:
    progress = progress_of(state)
    if progress is None:
        return Text("")
    grid = Table.grid(expand=True, padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_column(ratio=1)
    grid.add_column(no_wrap=True)
    bar = ProgressBar(total=1.0, completed=progress.share, finished_style="green", complete_style="green")
    is_at_work = not state.ended and not is_silent(state, now_ns=now_ns)
    grid.add_row(bar, _way(progress, is_at_work=is_at_work))
    return grid


def _way(progress: Progress, *, is_at_work: bool) -> Text:
    text = Text.assemble((f"{progress.share:.0%}", "bold"), f" {progress.text}")
    if progress.left_s is not None and is_at_work:
        text.append(f" · {duration(progress.left_s)} left")
    return text


def _figures(state: WatchState, *, width: int) -> Table:
    last, recent = state.recent.last, state.recent
    cells = {
        "epoch": count(state.epoch + 1) if last else "–",
        "loss": f"{recent.loss:.3f}" if last else "–",
        "nll": f"{recent.nll:.3f}" if last else "–",
        "target tokens/s": f"{recent.tokens_per_s:,.0f}" if last else "–",
        "learning rate": f"{last.learning_rate:.2e}" if last else "–",
        "gradient norm": f"{last.gradient_norm:.2f}" if last else "–",
        "elapsed": duration(state.spent.total_s),
    }
    left_out = {"nll", "elapsed"} if width < NARROW else set()
    shown = {name: value for name, value in cells.items() if name not in left_out}
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for name in shown:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row(*(Text(value, "bold") for value in shown.values()))
    return table


def _chart(state: WatchState, rows: int, *, width: int, ascii_only: bool) -> list[Text]:
    """The loss over the whole run, with the heights of its edges beside it."""
    values = state.curve.values(width - GUTTER)
    if not values:
        return []
    chart = draw_chart(values, rows=rows, ascii_only=ascii_only)
    edges = [f"loss {chart.top:5.2f} ", *[""] * (rows - 2), f"     {chart.low:5.2f} "][:rows]
    pairs = zip(edges, chart.rows, strict=True)
    return [Text.assemble((f"{edge:{GUTTER}}", "dim"), (row, "blue"), no_wrap=True) for edge, row in pairs]


def _results(state: WatchState, plan: Counter[str], *, width: int) -> RenderableType:
    evaluations = evaluations_table(state, rows=plan["evaluations"], width=width)
    samples = samples_table(state.samples, rows=plan["samples"])
    if width < WIDE:
        between = [""] if plan["evaluations"] and plan["samples"] else []
        shown = [evaluations] if plan["evaluations"] else []
        return Group(*shown, *between, *([samples] if plan["samples"] else []))
    grid = Table.grid(expand=True, padding=(0, 4, 0, 0))
    grid.add_column()
    grid.add_column(ratio=1)
    grid.add_row(evaluations, samples)
    return grid


def _trouble(trouble: Trouble, now_ns: int) -> Table:
    grid = Table.grid(expand=True, padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1, style="yellow")
    grid.add_column(no_wrap=True, style="dim")
    age = duration(max(0.0, (now_ns - trouble.time_ns) / NANO))
    grid.add_row(Text(visible(f"! {trouble}")), f"{age} ago")
    return grid
