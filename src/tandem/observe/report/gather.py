"""All that a report shows of a run, gathered once for every form of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tandem.errors import TandemError
from tandem.observe.figures import FIGURES
from tandem.observe.figures.look import Figure
from tandem.observe.finding import Finding
from tandem.observe.report.strict import strict_json
from tandem.observe.series.columns import Series
from tandem.observe.series.fold import read_series
from tandem.observe.verdicts import judge_run
from tandem.runlog.layout import RunLayout

__all__ = ["Report", "gather_report", "read_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A run and what is to be said about it."""

    series: Series
    findings: tuple[Finding, ...]
    figures: Mapping[str, Figure]
    """By name; those that would have nothing to show are not there."""
    undrawn: Mapping[str, str] = field(default_factory=dict)
    """Figures that could not be drawn, which is an error of ours, with the reason."""


def read_report(run: Path, *, on_progress: Callable[[float], None] | None = None) -> Report:
    """Read the run's logs and judge them; nothing else of the folder is needed."""
    if not run.is_dir():
        raise TandemError(f"There is no run {run}: check the path.")
    if not RunLayout(run).log.is_dir():
        raise TandemError(f"There is no run log in {RunLayout(run).log}: check the name of the run.")
    return gather_report(read_series(run, on_progress=on_progress))


def gather_report(series: Series) -> Report:
    """Judge the run and draw its figures."""
    drawn: dict[str, Figure] = {}
    undrawn: dict[str, str] = {}
    for name, draw in FIGURES.items():
        try:
            if (figure := draw(series)) is not None:
                drawn[name] = {key: strict_json(part) for key, part in figure.items()}
        except Exception as error:  # noqa: BLE001 - the answers are worth more than one figure
            undrawn[name] = f"{type(error).__name__}: {error}"
    return Report(series=series, findings=judge_run(series), figures=drawn, undrawn=undrawn)
