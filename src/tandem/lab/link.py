"""What the link between a host and the switch is like, and how people write it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tandem.errors import TandemError

__all__ = ["Link", "changed", "describe", "read_delay", "read_loss", "read_rate"]

_BITS = {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_NUMBER = r"(\d{1,9}(?:\.\d{1,6})?)"
_LOWEST_BITS, _HIGHEST_BITS = 10**5, 10**11
_LONGEST_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One host's link; rate and loss hold in each direction."""

    rate_bits: int | None = None
    """Bits a second; None is as fast as the machine can."""
    delay_s: float = 0.0
    """What the host sends arrives so much later: there and back takes the delays of both hosts."""
    loss: float = 0.0
    """Share of packets that vanish."""
    is_up: bool = True


def read_rate(text: str) -> int | None:
    """Bits a second from "200mbit" or "1gbit"; None from "none"."""
    if text == "none":
        return None
    found = re.fullmatch(_NUMBER + "(kbit|mbit|gbit)", text)
    bits = round(float(found[1]) * _BITS[found[2]]) if found else 0
    if not _LOWEST_BITS <= bits <= _HIGHEST_BITS:
        raise TandemError(f"{text!r} is no rate: write 100kbit to 100gbit, such as 200mbit, or none.")
    return bits


def read_delay(text: str) -> float:
    """Seconds from "5ms", "200us" or "0.1s"."""
    found = re.fullmatch(_NUMBER + "(us|ms|s)", text)
    seconds = float(found[1]) * _SECONDS[found[2]] if found else -1.0
    if not 0.0 <= seconds <= _LONGEST_S:
        raise TandemError(f"{text!r} is no delay: write 0ms to 10s, such as 0.2ms.")
    return seconds


def read_loss(text: str) -> float:
    """A share from "1%"."""
    found = re.fullmatch(_NUMBER + "%", text)
    share = float(found[1]) / 100 if found else -1.0
    if not 0.0 <= share <= 1.0:
        raise TandemError(f"{text!r} is no loss: write 0% to 100%, such as 1%.")
    return share


def changed(link: Link, words: Sequence[str]) -> Link:
    """The link after "down", "up", "rate 200mbit", "delay 5ms", "loss 1%", or several of them in a row."""
    left = list(words)
    if not left:
        raise TandemError("Say what becomes of the link: up, down, rate 200mbit, delay 5ms or loss 1%.")
    while left:
        word = left.pop(0)
        if word in {"up", "down"}:
            link = replace(link, is_up=word == "up")
            continue
        if word not in {"rate", "delay", "loss"}:
            raise TandemError(f"A link has no {word!r}: say up, down, rate 200mbit, delay 5ms or loss 1%.")
        if not left:
            raise TandemError(f"{word} needs a value: rate 200mbit, delay 5ms or loss 1%.")
        link = _with_value(link, word, left.pop(0))
    return link


def _with_value(link: Link, word: str, value: str) -> Link:
    if word == "rate":
        return replace(link, rate_bits=read_rate(value))
    if word == "delay":
        return replace(link, delay_s=read_delay(value))
    return replace(link, loss=read_loss(value))


def describe(link: Link) -> str:
    """The link in words: "up, 200 Mb/s, 5 ms, 1 % loss"."""
    words = ["up" if link.is_up else "down"]
    words.append("any rate" if link.rate_bits is None else f"{link.rate_bits / 1e6:g} Mb/s")
    if link.delay_s:
        words.append(f"{link.delay_s * 1e3:g} ms")
    if link.loss:
        words.append(f"{link.loss * 100:g} % loss")
    return ", ".join(words)
