"""Curves of several runs in one figure: against steps, target tokens or training time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tandem.artefact import JsonValue
from tandem.errors import TandemError
from tandem.observe.compare.place import AGAINST, Against, evaluation_places, step_places
from tandem.observe.figures.clock import HOURS_FROM_S, MINUTES_FROM_S
from tandem.observe.figures.curve import MOST, Trace, axis, curves, line
from tandem.observe.figures.look import BROWN, GREEN, MUTED, PURPLE, SKY, SOURCE, TARGET, Figure
from tandem.observe.series.columns import Evaluation, Series
from tandem.observe.series.thin import thin

__all__ = [
    "QUANTITIES",
    "Points",
    "Quantity",
    "curve_points",
    "overlay_figure",
    "overlay_title",
    "short_name",
]

Numbers = NDArray[np.float64]
Quantity = Literal["loss", "valid_loss", "bleu", "learning_rate", "gradient_norm", "throughput"]
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)

COLOURS = (SOURCE, TARGET, GREEN, PURPLE, BROWN, SKY, MUTED)
DASHES = ("solid", "dash", "dot", "dashdot")
"""Four dashes and seven colours: neighbours differ in both, and the first 28 runs in at least one."""
LONGEST_NAME = 24
"""Characters in the legend, which must fit a phone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """What a run has to show."""

    x: Numbers
    y: Numbers
    is_measured: bool
    """Whether points were measured one by one."""
    reach: tuple[Numbers, Numbers] | None = None
    """From each point down and up to the ends of its interval."""


def overlay_figure(named: Mapping[str, Series], *, quantity: str, against: str) -> Figure | None:
    """A curve for each run that has the quantity; None where none has. TandemError names what can be asked for."""
    draw = _QUANTITIES.get(quantity)
    if draw is None:
        raise TandemError(f"There is no quantity {quantity!r}: take one of {', '.join(QUANTITIES)}.")
    place = next((each for each in AGAINST if each == against), None)
    if place is None:
        raise TandemError(f"Runs cannot be laid over {against!r}: take one of {', '.join(AGAINST)}.")
    found = {name: draw.points(series, place) for name, series in named.items()}
    shown = {name: points for name, points in found.items() if points is not None and len(points.x)}
    if not shown:
        return None
    unit, scale = _unit(place, max(float(points.x[-1]) for points in shown.values()))
    looks = dict(zip(found, zip(cycle(COLOURS), cycle(DASHES), strict=False), strict=False))
    traces = [_trace(name, points, scale=scale, look=looks[name]) for name, points in shown.items()]
    return curves(traces, x=axis(unit), y=axis(draw.title, **draw.axis))


def curve_points(series: Series, quantity: Quantity, against: Against) -> Points | None:
    """The curve of one run; None where its log does not tell."""
    return _QUANTITIES[quantity].points(series, against)


def overlay_title(quantity: str) -> str:
    """What is shown of the runs, as the title of a figure."""
    title = _QUANTITIES[quantity].title.partition(",")[0]
    return title[:1].upper() + title[1:]


def _trace(name: str, points: Points, *, scale: float, look: tuple[str, str]) -> Trace:
    colour, dash = look
    trace = line(
        short_name(name), points.x / scale, points.y, colour=colour, dash=dash, markers=points.is_measured
    )
    # An interval belongs to one evaluation: where points had to be thinned out, none is shown.
    if points.reach is not None and len(points.x) <= MOST:
        down, up = ([round(float(each), 4) for each in np.nan_to_num(side)] for side in points.reach)
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": up,
            "arrayminus": down,
            "color": colour,
            "thickness": 1,
        }
    return trace


def short_name(name: str) -> str:
    """The ends of a long name: runs of one series often differ in their last letters."""
    half = LONGEST_NAME // 2
    return name if len(name) <= LONGEST_NAME else f"{name[: half - 1]}…{name[-half:]}"


def _unit(against: Against, greatest: float) -> tuple[str, float]:
    if against == "steps":
        return "step", 1.0
    if against == "tokens":
        return "target tokens", 1.0
    if greatest < MINUTES_FROM_S:
        return "training time, s", 1.0
    return ("training time, min", 60.0) if greatest < HOURS_FROM_S else ("training time, h", 3600.0)


def _of_steps(column: Callable[[Series], Numbers]) -> Callable[[Series, Against], Points | None]:
    def points(series: Series, against: Against) -> Points | None:
        x = step_places(series, against)
        if x is None:
            return None
        y = column(series)
        known = np.isfinite(y)
        return Points(x=x[known], y=y[known], is_measured=False)

    return points


def _trained(series: Series) -> Numbers:
    nll = series.steps.nll
    return series.steps.loss if series.imported is not None or not np.isfinite(nll).any() else nll


def _gradient(series: Series) -> Numbers:
    norm = series.steps.gradient_norm
    return np.where(norm > 0, norm, np.nan)


def _throughput(series: Series, against: Against) -> Points | None:
    steps, x = series.steps, step_places(series, against)
    known = (steps.target_tokens > 0) & (steps.duration_s > 0)
    if x is None or not known.any():
        return None
    # Tokens and seconds are averaged apart: the mean of ratios would favour short steps.
    at, tokens = thin(x[known], steps.target_tokens[known].astype(np.float64), MOST)
    _, seconds = thin(x[known], steps.duration_s[known], MOST)
    return Points(x=at, y=tokens / seconds, is_measured=False)


def _evaluated(
    series: Series, against: Against, value: Callable[[Evaluation], float]
) -> tuple[list[Evaluation], Numbers, Numbers] | None:
    kept = [each for each in series.evaluations if np.isfinite(value(each))]
    x = evaluation_places(series, kept, against)
    return None if x is None or not kept else (kept, x, np.array([value(each) for each in kept]))


def _valid_loss(series: Series, against: Against) -> Points | None:
    found = _evaluated(series, against, lambda each: each.valid_loss)
    return None if found is None else Points(x=found[1], y=found[2], is_measured=True)


def _bleu(series: Series, against: Against) -> Points | None:
    found = _evaluated(series, against, lambda each: each.bleu)
    if found is None:
        return None
    kept, x, y = found
    low, high = (np.array([getattr(each, end) for each in kept]) for end in ("bleu_low", "bleu_high"))
    return Points(x=x, y=y, is_measured=True, reach=(y - low, high - y))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """How a quantity is drawn."""

    title: str
    points: Callable[[Series, Against], Points | None]
    axis: Mapping[str, JsonValue]


_QUANTITIES: Mapping[str, _Drawn] = {
    "loss": _Drawn(title="training loss, nats a token", points=_of_steps(_trained), axis={}),
    "valid_loss": _Drawn(title="loss on valid, nats a token", points=_valid_loss, axis={}),
    "bleu": _Drawn(title="BLEU on valid, 0 to 100", points=_bleu, axis={}),
    "learning_rate": _Drawn(
        title="learning rate",
        points=_of_steps(lambda series: series.steps.learning_rate),
        axis={"rangemode": "tozero", "exponentformat": "power"},
    ),
    "gradient_norm": _Drawn(title="gradient norm", points=_of_steps(_gradient), axis={"type": "log"}),
    "throughput": _Drawn(title="target tokens a second", points=_throughput, axis={"rangemode": "tozero"}),
}
