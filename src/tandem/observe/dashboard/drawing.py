"""Figures and answers of a run, made of its series and put on its board when they have changed."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from tandem.artefact import JsonValue
from tandem.errors import TandemError
from tandem.observe.dashboard.board import Board
from tandem.observe.figures import FIGURES
from tandem.observe.figures.alternative import describe_figure
from tandem.observe.figures.caption import CAPTIONS
from tandem.observe.figures.clock import clock_of
from tandem.observe.figures.look import Figure
from tandem.observe.finding import Evidence, Finding
from tandem.observe.report.quantity import evidence_text
from tandem.observe.series.columns import Series
from tandem.observe.series.window import window
from tandem.observe.verdicts import judge_run

__all__ = ["Drawing", "draw_stretch", "figure_note", "finding_note"]


def figure_note(name: str, figure: Figure, *, title: str = "", meaning: str = "") -> dict[str, JsonValue]:
    """A figure with the words that go with it; one that is not the report's brings its own."""
    caption = CAPTIONS.get(name)
    title = title or (caption.title if caption else name)
    return {
        "name": name,
        "figure": figure,
        "title": title,
        "meaning": meaning or (caption.meaning if caption else ""),
        "section": caption.section if caption else "",
        "alternative": f"{title}. {describe_figure(figure)}",
    }


def finding_note(finding: Finding) -> dict[str, JsonValue]:
    """An answer with all that it rests on."""
    return {
        "number": finding.number,
        "key": finding.key,
        "question": finding.question,
        "verdict": finding.verdict,
        "confidence": finding.confidence,
        "answer": finding.answer,
        "doubt": finding.doubt,
        "advice": finding.advice,
        "would_change": finding.would_change,
        "missing": list(finding.missing),
        "figure": finding.figure,
        "section": finding.section,
        "about": finding.about,
        "evidence": [_evidence(each) for each in finding.evidence],
    }


def _evidence(each: Evidence) -> JsonValue:
    return {
        "name": each.name,
        "text": evidence_text(each),
        "definition": each.definition,
        "figure": each.figure,
    }


def draw_stretch(name: str, series: Series, begin: float, end: float) -> dict[str, JsonValue] | None:
    """A figure of the stretch between two places of its x axis alone, and so finer; None where it would be empty.

    Raises TandemError where the figure has no axis that goes on.
    """
    draw = FIGURES[name]
    whole = draw(series)
    if whole is None:
        return None
    clock = clock_of(series)
    shown = str(_axis(whole).get("title"))
    if shown == str(clock.axis()["title"]):
        part = window(series, times=(begin * clock.seconds, end * clock.seconds))
    elif shown == str({"text": "step"}):
        part = window(series, steps=(begin, end))
    else:
        raise TandemError(f"The figure {name!r} has no stretches: ask for it without from and to.")
    # The unit of the axis goes by the length of the run, which the stretch is not.
    figure = draw(replace(part, end_s=series.end_s))
    if figure is None:
        return None
    if math.isfinite(begin) and math.isfinite(end):
        _axis(figure)["range"] = [begin, end]
    return figure_note(name, figure)


def _axis(figure: Figure) -> dict[str, JsonValue]:
    layout = figure["layout"]
    axis = layout.get("xaxis") if isinstance(layout, dict) else None
    return axis if isinstance(axis, dict) else {}


class Drawing:
    """Draws what somebody looks at, each figure once for each state of the series."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._series: Series | None = None
        self._fresh: set[str] = set()
        self._has: set[str] = set()
        self._is_judged = False

    def take(self, series: Series) -> None:
        """Draw from this series from now on."""
        self._series = series
        self._fresh.clear()
        self._is_judged = False

    @property
    def series(self) -> Series | None:
        """What is drawn from now."""
        return self._series

    def draw(self, *, is_over: Callable[[], bool]) -> None:
        """Draw what is looked at; what the run had not before is tried too, to know what there is to ask for."""
        if self._series is None:
            return
        wanted = self._board.wanted()
        untried = [name for name in FIGURES if name not in self._has and name not in wanted]
        # Who looks waits for the former, and takes the latter as they come.
        for names in ([name for name in FIGURES if name in wanted], untried):
            self._draw_all(names, is_over)
            if not is_over() and (self._has or names is untried):
                self._board.put("figures", {"names": [name for name in FIGURES if name in self._has]})

    def judge(self) -> None:
        """Answer the eleven questions, if they are not answered yet from this series."""
        if self._series is not None and not self._is_judged:
            self._board.put("findings", [finding_note(each) for each in judge_run(self._series)])
            self._is_judged = True

    def _draw_all(self, names: Iterable[str], is_over: Callable[[], bool]) -> None:
        for name in names:
            if name not in self._fresh and not is_over():
                self._draw(name)

    def _draw(self, name: str) -> None:
        assert self._series is not None
        self._fresh.add(name)
        try:
            figure = FIGURES[name](self._series)
        except Exception as error:  # noqa: BLE001 - the other figures are as good as before
            note = f"{CAPTIONS[name].title} could not be drawn ({type(error).__name__}: {error}); please report it."
            empty: Figure = {"data": [], "layout": {}}
            self._board.put(f"figure {name}", {**figure_note(name, empty), "alternative": note})
            return
        if figure is None:
            self._has.discard(name)
            self._board.drop(f"figure {name}")
            return
        self._has.add(name)
        self._board.put(f"figure {name}", figure_note(name, figure))
