"""Figures that a person saw in other tools while a run went on."""

import re
from dataclasses import dataclass

from tandem.artefact import JsonValue
from tandem.errors import TandemError

__all__ = ["Observed", "read_bits_per_s", "read_bytes_per_s", "read_share"]

_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_RATE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*([kKmMgGtT]?i?)(B|[Bb]ytes?|b|[Bb]its?)(?:/s|ps)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What was seen; None where nobody looked."""

    nic_bytes_per_s: float | None = None
    """On the busiest interface, as the tool showed it."""
    link_bits_per_s: float | None = None
    """That the link is said to carry."""
    gpu_utilisation: float | None = None
    """From 0 to 1."""

    def facts(self) -> dict[str, JsonValue]:
        """By the names that a run log has for them."""
        named = {
            "observed_nic_bytes_per_s": self.nic_bytes_per_s,
            "observed_link_bits_per_s": self.link_bits_per_s,
            "observed_gpu_utilisation": self.gpu_utilisation,
        }
        return {name: value for name, value in named.items() if value is not None}


def read_bits_per_s(text: str) -> float:
    """Bits a second from "1gbit", "1Gb/s" or "125MB/s": B is a byte and b a bit."""
    found = _RATE.fullmatch(text.strip())
    factor = _PREFIXES.get(found[2].lower()) if found else None
    if found is None or factor is None or not float(found[1]):
        raise TandemError(
            f"{text!r} is no rate: write 220MB/s, 1gbit or 940Mb/s, where B is bytes and b is bits."
        )
    each = 8 if found[3] == "B" or found[3].lower().startswith("byte") else 1
    return float(found[1]) * factor * each


def read_bytes_per_s(text: str) -> float:
    """Bytes a second, written in the same way."""
    return read_bits_per_s(text) / 8


def read_share(text: str) -> float:
    """A share from 0 to 1 out of percent, with or without the sign."""
    found = re.fullmatch(r"(\d{1,3}(?:\.\d{1,6})?)\s*%?", text.strip())
    if found is None or float(found[1]) > 100:
        raise TandemError(f"{text!r} is no utilisation: write percent, from 0 to 100.")
    return float(found[1]) / 100
