"""The data card, shown: in the terminal and as a page."""

from tandem.observe.data_card.answers import headline
from tandem.observe.data_card.html import write_html
from tandem.observe.data_card.terminal import render_card

__all__ = ["headline", "render_card", "write_html"]
