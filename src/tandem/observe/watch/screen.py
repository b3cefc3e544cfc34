"""The display of a run on a terminal, made to fit its width and height."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from tandem.observe.numbers import duration
from tandem.observe.visible import visible
from tandem.observe.watch.chart import draw_chart, draw_spark
from tandem.observe.watch.columns import shortened
from tandem.observe.watch.host_rows import HostRows
from tandem.observe.watch.life import Life, is_quiet, life_of
from tandem.observe.watch.progress import (
    Progress,
    equipment_of,
    numbers_of,
    progress_of,
    share_text,
    status,
)
from tandem.observe.watch.state import WatchState
from tandem.observe.watch.tables import (
    evaluations_table,
    headed_table,
    phases_bar,
    phases_legend,
    samples_table,
)
from tandem.observe.watch.troubles import Trouble

__all__ = ["Screen"]

WIDE = 120
"""From here on, samples stand beside the evaluations."""
HEAD_ROWS = 5
FRAMES = {"troubles": 0, "trends": 0, "evaluations": 2}
"""Rows around a part beside its own, which are one for the others."""
GUTTER = 12
NANO = 1_000_000_000
SIGNS = {"·": "-", "–": "-", "…": ".", "°": " ", "↑": "^", "↓": "v", "━": "-", "╸": "-", "╺": "-"}
"""For terminals that know ASCII alone."""
STATUS_STYLES = {"training": "green", "evaluating": "cyan", "finished": "bold green", "restarting": "yellow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """A picture of the state at a moment, for a terminal of so many rows."""

    state: WatchState
    now_ns: int
    rows: int
    folder: Path | None = None
    """Where the run lies, for what its log cannot tell."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw within the width that is given."""
        picture = Group(*self._parts(options.max_width, ascii_only=options.ascii_only))
        if not options.ascii_only:
            yield picture
            return
        for segment in console.render(picture, options):
            yield segment if segment.control else Segment(_plain(segment.text), segment.style)

    def _parts(self, width: int, *, ascii_only: bool) -> list[RenderableType]:
        state = self.state
        life = life_of(state, folder=self.folder, now_ns=self.now_ns)
        hosts = HostRows(
            hosts=[] if state.ended or life == "over" else list(state.hosts.values()),
            width=width,
            now_ns=self.now_ns,
            ascii_only=ascii_only,
            delivered=state.delivered,
        )
        phases = state.anatomy.shares(state.recent, state.started)
        plan = _plan(state, hosts, rows=self.rows, width=width, has_phases=bool(phases))
        parts: list[RenderableType] = [
            _title(state, life, self.now_ns, width=width),
            _bar(state, life, width=width),
            "",
            _figures(state, width=width),
        ]
        newest = list(state.troubles)[::-1][: plan["troubles"]]
        parts += [_trouble(each, self.now_ns, width=width) for each in newest]
        if plan["chart"]:
            parts += ["", *_chart(state, plan["chart"], width=width, ascii_only=ascii_only)]
        parts += _trends(state, plan["trends"], width=width, ascii_only=ascii_only)
        if plan["hosts"]:
            parts += ["", *hosts.draw(plan["hosts"])]
        if plan["phases"]:
            bar = [phases_bar(phases, width=width, ascii_only=ascii_only)] if plan["phases"] > 1 else []
            parts += ["", *bar, phases_legend(phases, width=width)]
        if plan["evaluations"] or plan["samples"]:
            parts += ["", _results(state, plan, width=width)]
        return parts


def _plain(text: str) -> str:
    """For a terminal that knows ASCII alone; what is drawn keeps its width."""
    return "".join(each if each.isascii() else SIGNS.get(each, "?" * cell_len(each)) for each in text)


def _plan(state: WatchState, hosts: HostRows, *, rows: int, width: int, has_phases: bool) -> Counter[str]:
    """Share the rows out: what matters most comes first, and what is left over makes it longer."""
    evaluations, samples, has_steps = (
        len(state.evaluations),
        3 * len(state.samples),
        state.recent.last is not None,
    )
    beside = width >= WIDE
    if beside:
        evaluations, samples = max(evaluations, samples - 1), 0
    phases = int(has_phases)
    curves = 2 * bool(state.curve.values(1))
    wishes = [
        ("troubles", min(len(state.troubles), max(1, rows // 8)), 1),
        ("evaluations", min(evaluations, 3), 1),
        ("chart", curves, 1),
        ("hosts", min(len(hosts.hosts), 3), 1),
        ("trends", 2 * has_steps, 1),
        ("samples", min(samples, 3), 3),
        ("phases", phases, 1),
        ("hosts", min(len(hosts.hosts), rows // 4) - 3, 1),
        ("evaluations", min(evaluations, 12) - 3, 1),
        ("samples", min(samples, 9) - 3, 3),
        ("phases", phases, 1),
        ("chart", curves, 1),
        ("hosts", len(hosts.hosts) - max(3, rows // 4), 1),
        ("hosts", hosts.most - len(hosts.hosts), max(1, hosts.most - len(hosts.hosts))),
        ("chart", 4 * curves, 1),
    ]
    plan: Counter[str] = Counter()
    left = rows - HEAD_ROWS
    for name, wanted, unit in wishes:
        frame = 0 if plan[name] else FRAMES.get(name, 1)
        given = min(wanted, left - frame) // unit * unit
        if given > 0:
            plan[name] += given
            left -= given + frame
    if beside and plan["evaluations"]:
        plan["samples"] = plan["evaluations"] + 1
    return plan


def _title(state: WatchState, life: Life, now_ns: int, *, width: int) -> RenderableType:
    style = "bold red" if is_quiet(life) else STATUS_STYLES.get(state.doing, "")
    told = visible(status(state, life=life, now_ns=now_ns))
    doing = Text(shortened(told, width - min(width // 3, cell_len(state.run) + 3)), style)
    name = Text(visible(state.run or state.recipe or "run"), "bold")
    if state.recipe not in ("", name.plain):
        name.append(visible(f" ({state.recipe})"), "not bold")
    # What the run does matters more than all of its name.
    name.truncate(max(width // 3, width - 8 - doing.cell_len), overflow="ellipsis")
    title = Text.assemble(name, " · ", doing)
    equipment = equipment_of(state)
    grid = Table.grid(expand=True, padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, overflow="ellipsis")
    grid.add_column(no_wrap=True, justify="right", ratio=1, style="dim", overflow="ellipsis")
    has_room = title.cell_len + 2 + cell_len(equipment) <= width
    grid.add_row(title, *([equipment] if has_room else []))
    return grid


def _bar(state: WatchState, life: Life, *, width: int) -> RenderableType:
    progress = progress_of(state, life=life)
    if progress is None:
        return Text("")
    grid = Table.grid(expand=True, padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_column(ratio=1)
    grid.add_column(no_wrap=True)
    bar = ProgressBar(total=1.0, completed=progress.share, finished_style="green", complete_style="green")
    grid.add_row(bar, _way(progress, width=width))
    return grid


def _way(progress: Progress, *, width: int) -> Text:
    text = Text.assemble((share_text(progress.share), "bold"), f" {progress.text}")
    left = "" if progress.left_s is None else f" · {duration(progress.left_s)} left"
    return text.append(left if text.cell_len + cell_len(left) <= width else "")


def _figures(state: WatchState, *, width: int) -> Table:
    cells = {name: [Text(value, "bold")] for name, value in numbers_of(state).items()}
    return headed_table(cells, width=width, first_to_go=("nll", "wall time"))


def _chart(state: WatchState, rows: int, *, width: int, ascii_only: bool) -> list[Text]:
    """The loss over the whole run, with the heights of its edges beside it."""
    values = state.curve.values(width - GUTTER)
    if not values:
        return []
    chart = draw_chart(values, rows=rows, ascii_only=ascii_only)
    edges = [f"loss  {chart.top:5.2f} ", *[""] * (rows - 2), f"      {chart.low:5.2f} "][:rows]
    pairs = zip(edges, chart.rows, strict=True)
    return [Text.assemble((f"{edge:{GUTTER}}", "dim"), (row, "blue"), no_wrap=True) for edge, row in pairs]


def _trends(state: WatchState, rows: int, *, width: int, ascii_only: bool) -> list[Text]:
    """The pace over the whole run, and BLEU over its evaluations, with their last values."""
    paces = state.pace.values(width - GUTTER)
    scores = [each.bleu for each in state.evaluations if each.bleu is not None]
    trends = [("tok/s", _thousands(state.recent.tokens_per_s), paces)] if any(paces) else []
    trends += [("BLEU", f"{scores[-1]:.1f}", scores)] if scores else []
    drawn = []
    for name, last, values in trends[:rows]:
        spark = draw_spark(values, width=width - GUTTER, top=max(values), ascii_only=ascii_only)
        drawn.append(
            Text.assemble((f"{name:<6}{last:>5} ", "dim"), (spark, "blue"), no_wrap=True, overflow="crop")
        )
    return drawn


def _thousands(value: float) -> str:
    """In five signs."""
    for unit, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g}{sign}"
    return f"{value:.0f}"


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


def _trouble(trouble: Trouble, now_ns: int, *, width: int) -> Table:
    grid = Table.grid(expand=True, padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1, style="yellow")
    grid.add_column(no_wrap=True, style="dim")
    age = duration(max(0.0, (now_ns - trouble.time_ns) / NANO))
    grid.add_row(Text(shortened(visible(f"! {trouble}"), width - len(age) - 6)), f"{age} ago")
    return grid
