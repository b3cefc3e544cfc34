from typing import Any

import pytest
from plotly.offline import get_plotlyjs
from tests.unit.observe.report.told_run import build_run

from tandem.observe.compare.overlay import QUANTITIES, overlay_figure
from tandem.observe.figures import FIGURES
from tandem.observe.plotly_script import lighten

KNOWN = {"scatter", "bar"}
SCRIPT = """/** plotly */
(function(root, factory) { factory(); } (self, () => {
"use strict";var Plotly=(()=>{var a$=W(()=>{b.register([c$(),dE(),f()]);});return a$();})();
window.Plotly = Plotly;
return Plotly;
}));"""


def test_only_the_first_kind_of_traces_is_started_and_the_whole_stands_in_brackets() -> None:
    assert (
        lighten(SCRIPT)
        == """/** plotly */
(function(root, factory) { factory(); } (self, (() => {
"use strict";var Plotly=(()=>{var a$=W(()=>{b.register([c$()]);});return a$();})();
window.Plotly = Plotly;
return Plotly;
})));"""
    )


@pytest.mark.parametrize(
    "script",
    [
        "",
        SCRIPT + "\n",
        SCRIPT.replace("self, () =>", "self, function() "),
        SCRIPT.replace("c$(),dE(),f()", "c$()"),
        SCRIPT.replace("b.register", "e.register([g(),h()]);b.register"),
    ],
)
def test_a_script_of_an_unknown_make_is_left_as_it_is(script: str) -> None:
    assert lighten(script) == script


def test_the_installed_script_is_of_the_known_make() -> None:
    script = get_plotlyjs()
    assert 100 < len(script) - len(lighten(script)) < 1_000


def test_figures_are_made_of_the_kinds_that_are_started() -> None:
    run = build_run()
    figures: list[Any] = [draw(run) for draw in FIGURES.values()]
    figures += [overlay_figure({"one": run}, quantity=each, against="steps") for each in QUANTITIES]
    kinds = {trace["type"] for figure in figures if figure is not None for trace in figure["data"]}
    assert kinds == KNOWN
