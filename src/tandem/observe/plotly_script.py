"""Plotly's script as it is installed, told to run no more of itself than the figures need."""

import re

__all__ = ["lighten", "plotly_script"]

KINDS = re.compile(r"\.register\(\[([\w$]+\(\))(?:,[\w$]+\(\))+\]\)")
"""Where it starts its fifty kinds of traces and maps; the first one is bars, and lines are in its core."""
KNOWN = ("6", "7")
"""Versions that begin with bars."""
HEAD, TAIL = ', () => {\n"use strict";', "return Plotly;\n}));"


def plotly_script() -> str:
    """What a page needs to draw figures: several megabytes."""
    from plotly import __version__  # noqa: PLC0415  (only a page needs it)
    from plotly.offline import get_plotlyjs  # noqa: PLC0415

    script = str(get_plotlyjs())
    return lighten(script) if __version__.partition(".")[0] in KNOWN else script


def lighten(script: str) -> str:
    """The same script without the kinds of traces that no figure has; one of an unknown make is left as it is.

    What is not started takes a browser no time but for being skipped. And a function in brackets is compiled where it
    is loaded, beside the page, instead of where it is called.
    """
    if len(KINDS.findall(script)) != 1 or script.count(HEAD) != 1 or not script.endswith(TAIL):
        return script
    fewer = KINDS.sub(r".register([\1])", script)
    return fewer.replace(HEAD, HEAD.replace("(", "((", 1)).removesuffix(TAIL) + TAIL.replace("}", "})", 1)
