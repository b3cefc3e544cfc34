"""HTML written so that text from the data can never become markup."""

from collections.abc import Iterable
from html import escape

from tandem.observe.visible import visible

__all__ = ["Html", "joined", "tag"]

WITHOUT_END = ("input",)


class Html(str):
    """Markup that may be written as it stands; every other string is text and gets escaped."""

    __slots__ = ()


def tag(name: str, *children: str, **attributes: str) -> Html:
    """An element; an attribute's trailing underscore is dropped (`class_`) and inner ones become hyphens."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(value)}"' for key, value in attributes.items()
    )
    end = "" if name in WITHOUT_END else f"</{name}>"
    return Html(f"<{name}{written}>{joined(children)}{end}")


def joined(children: Iterable[str]) -> Html:
    """Markup and text, one after the other."""
    return Html("".join(child if isinstance(child, Html) else _escaped(child) for child in children))


def _escaped(text: str) -> str:
    return escape(visible(text))
