"""Evaluations, sample translations and step phases as pieces of the display."""

import math
from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from tandem.observe.numbers import count
from tandem.observe.visible import visible
from tandem.observe.watch.columns import GAP, fitting
from tandem.observe.watch.state import Evaluation, WatchState
from tandem.runlog.event import SampleTranslated

__all__ = ["evaluations_table", "headed_table", "phases_bar", "phases_legend", "samples_table"]

BEST = "*"
PHASE_STYLES = {
    "data": "blue",
    "forward": "green",
    "backward": "cyan",
    "compute": "green",
    "exchange": "red",
    "standstill": "bright_red",
    "network": "red",
    "waiting": "red",
    "slowest rank": "yellow",
    "optimizer": "magenta",
    "other": "bright_black",
}


def evaluations_table(state: WatchState, *, rows: int, width: int) -> Table:
    """The last evaluations; a star marks the best loss and the best BLEU."""
    best_loss, best_bleu = state.best("loss"), state.best("bleu")
    shown = list(state.evaluations)[-rows:]
    columns = {
        "evaluated at": [Text(f"step {count(each.step)}") for each in shown],
        "valid loss": [_score(each.valid_loss, "{:.3f}", is_best=each is best_loss) for each in shown],
        "perplexity": [_score(_perplexity(each), "{:,.2f}") for each in shown],
        "probe loss": [_score(each.probe_loss, "{:.3f}") for each in shown],
        "BLEU": [_score(each.bleu, "{:.1f}", is_best=each is best_bleu) for each in shown],
        "chrF": [_score(each.chrf, "{:.1f}") for each in shown],
    }
    return headed_table(columns, width=width, first_to_go=("probe loss", "perplexity", "chrF"))


def headed_table(columns: Mapping[str, list[Text]], *, width: int, first_to_go: Sequence[str]) -> Table:
    """Columns under their names, as many as go into the width."""
    cells = {name: [Text(name), *column] for name, column in columns.items()}
    kept = fitting(cells, width=width, first_to_go=first_to_go)
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
    for name in kept:
        table.add_column(name, justify="right", no_wrap=True)
    for row in zip(*(columns[name] for name in kept), strict=True):
        table.add_row(*row)
    return table


def _score(value: float | None, form: str, *, is_best: bool = False) -> Text:
    if value is None:
        return Text("–", "dim")
    mark = BEST if is_best else " "
    return Text(form.format(value) + mark, "bold green" if is_best else "")


def _perplexity(evaluation: Evaluation) -> float | None:
    loss = evaluation.valid_loss
    return None if loss is None else math.exp(min(loss, 100.0))


def samples_table(samples: Sequence[SampleTranslated], *, rows: int) -> Table:
    """Sample translations, three lines each, cut at the edge."""
    table = Table.grid(padding=(0, 1, 0, 0), expand=True)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for sample in samples[: max(0, rows // 3)]:
        table.add_row("source", Text(visible(sample.source)))
        table.add_row("reference", Text(visible(sample.reference)))
        table.add_row("model", Text(visible(sample.hypothesis), "bold"))
    return table


def phases_bar(phases: Mapping[str, float], *, width: int, ascii_only: bool = False) -> Text:
    """The step as one line in the colours of its phases."""
    text = Text()
    line = "-" if ascii_only else "━"
    done, edge = 0.0, 0
    for name, part in phases.items():
        done += part
        end = round(done * width)
        text.append(line * (end - edge), _style(name))
        edge = end
    return text


def phases_legend(phases: Mapping[str, float], *, width: int) -> Text:
    """Each phase with its share of the step, as many as go into the width."""
    named = {name: [Text(f"{name} {part:.0%}", _style(name))] for name, part in phases.items()}
    legend = Text(" " * GAP).join(named[name][0] for name in fitting(named, width=width))
    legend.no_wrap, legend.overflow = True, "ellipsis"
    return legend


def _style(name: str) -> str:
    return PHASE_STYLES.get(name, "white")
