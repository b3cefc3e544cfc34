"""Text from outside, made safe and legible for a terminal and a page."""

import unicodedata

__all__ = ["visible", "visible_lines"]

JOINERS = "\u200c\u200d"
"""Zero-width joiners belong to the spelling of Persian and Indic words."""


def visible(text: str) -> str:
    """Write out what is not seen or steers a terminal: controls, line ends, direction marks."""
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def visible_lines(text: str) -> str:
    """Do so in a text of several lines, whose line ends and tabs stay."""
    return "".join(letter if letter in "\n\t" else _shown(letter) for letter in text)


def _shown(character: str) -> str:
    if character.isprintable() or character in JOINERS or unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode("ascii")
