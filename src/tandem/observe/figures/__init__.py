"""Figures of runs and data, as plotly's JSON: one code for every page that shows them."""

from collections.abc import Callable, Mapping

from tandem.observe.figures.checkpoints import checkpoint_parts_figure
from tandem.observe.figures.dropped import dropped_figure
from tandem.observe.figures.exchange import exchange_figure, step_bytes_figure
from tandem.observe.figures.hosts import cpu_figure, gpus_figure, network_figure
from tandem.observe.figures.lengths import lengths_figure
from tandem.observe.figures.look import Figure
from tandem.observe.figures.losses import losses_figure
from tandem.observe.figures.progress import gradient_norm_figure, learning_rate_figure, throughput_figure
from tandem.observe.figures.scores import bleu_figure
from tandem.observe.figures.steps import anatomy_figure, step_times_figure
from tandem.observe.figures.time_split import time_split_figure
from tandem.observe.series.columns import Series

__all__ = ["FIGURES"]


def _dropped(series: Series) -> Figure | None:
    card = series.card
    if card is None:
        return None
    return dropped_figure(read=card.raw.lines, kept=card.cleaned.lines, dropped=card.dropped)


def _lengths(series: Series) -> Figure | None:
    card = series.card
    return None if card is None else lengths_figure(card.lengths, card.languages)


FIGURES: Mapping[str, Callable[[Series], Figure | None]] = {
    "losses": losses_figure,
    "bleu": bleu_figure,
    "learning_rate": learning_rate_figure,
    "gradient_norm": gradient_norm_figure,
    "throughput": throughput_figure,
    "anatomy": anatomy_figure,
    "time_split": time_split_figure,
    "gpus": gpus_figure,
    "network": network_figure,
    "cpu": cpu_figure,
    "step_times": step_times_figure,
    "step_bytes": step_bytes_figure,
    "exchange": exchange_figure,
    "checkpoint_parts": checkpoint_parts_figure,
    "dropped": _dropped,
    "lengths": _lengths,
}
"""By name; each is None where the run has nothing to show in it."""
