"""What all figures share: colours that colour-blind people can tell apart, the layout, safe labels."""

from typing import TypeAlias

from tandem.artefact import JsonValue
from tandem.observe.visible import visible

__all__ = ["BROWN", "GREEN", "MUTED", "PURPLE", "SKY", "SOURCE", "TARGET", "Figure", "base_layout", "label"]

Figure: TypeAlias = dict[str, JsonValue]
"""A plotly figure: `data` and `layout`."""

SOURCE = "#1160d9"
"""Blue; this and all others are over 3:1 against the light and the dark page, and apart for colour-blind people."""
TARGET = "#d47f00"
"""Orange."""
GREEN = "#10a664"
PURPLE = "#9347a0"
BROWN = "#aa471b"
SKY = "#2b96e3"
MUTED = "#8d9298"


def base_layout(*, height: int) -> dict[str, JsonValue]:
    """A transparent layout; the page's stylesheet colours text and grid for light and dark."""
    return {
        "height": height,
        "margin": {"l": 8, "r": 16, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "hoverlabel": {"bgcolor": "#2b3137", "bordercolor": "#2b3137", "font": {"color": "#ffffff"}},
        "dragmode": False,
    }


def label(text: str) -> str:
    """Text that plotly shows as it stands: it would take tags in it for formatting and links."""
    return visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
