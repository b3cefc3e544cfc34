"""The network interfaces of a host: what goes through them, what is lost, what is sent again."""

import math
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypedDict

import psutil

from tandem.telemetry.nominal import NETWORK, nominal_bits_per_s
from tandem.telemetry.sampler.growth import Growth, rate

__all__ = ["Network", "NetworkFacts", "NetworkSample"]

_LOOPBACK = "lo"
_MOST_INTERFACES = 16
_SNMP = Path("/proc/self/net/snmp")
_COUNTS = (
    "bytes_recv",
    "bytes_sent",
    "packets_recv",
    "packets_sent",
    "dropin",
    "dropout",
    "errin",
    "errout",
)


class NetworkFacts(TypedDict):
    """Fields of HostDescribed."""

    interfaces: tuple[str, ...]
    interface_bits_per_s: tuple[int, ...]


class NetworkSample(TypedDict):
    """Fields of HostSampled."""

    received_bytes_per_s: tuple[float, ...]
    sent_bytes_per_s: tuple[float, ...]
    packets_per_s: tuple[float, ...]
    dropped: tuple[int, ...]
    retransmitted: int


class Network:
    """The interfaces that were up and had an address when this was built, the loopback first."""

    def __init__(self, *, snmp: Path = _SNMP, network: Path = NETWORK) -> None:
        self._snmp, self._network = snmp, network
        self._names = _find_interfaces()
        self._growth = Growth()
        self._growth.since_last(self._counters())

    def describe(self) -> NetworkFacts:
        """Names, and the speeds that those with a card behind them agreed on with their switches."""
        speeds = (nominal_bits_per_s(name, network=self._network) for name in self._names)
        return {"interfaces": self._names, "interface_bits_per_s": tuple(speeds)}

    def sample(self, seconds: float) -> NetworkSample:
        """Rates over the seconds since the last look, and counts of what went wrong in them."""
        grown = self._growth.since_last(self._counters())

        def rates(*counts: str) -> tuple[float, ...]:
            return tuple(rate(_sum(grown, name, counts), seconds) for name in self._names)

        return {
            "received_bytes_per_s": rates("bytes_recv"),
            "sent_bytes_per_s": rates("bytes_sent"),
            "packets_per_s": rates("packets_recv", "packets_sent"),
            "dropped": tuple(
                _whole(_sum(grown, name, ("dropin", "dropout", "errin", "errout"))) for name in self._names
            ),
            "retransmitted": _whole(grown.get("retransmitted", math.nan)),
        }

    def _counters(self) -> dict[str, int]:
        held = psutil.net_io_counters(pernic=True, nowrap=False)
        found = {
            f"{name} {count}": int(getattr(held[name], count))
            for name in self._names
            if name in held
            for count in _COUNTS
        }
        return found | _read_retransmitted(self._snmp)


def _find_interfaces() -> tuple[str, ...]:
    """Those without an address of their own are parts of others, or ends of containers: counting them counts twice."""
    addresses, stats = psutil.net_if_addrs(), psutil.net_if_stats()
    found = [name for name, held in stats.items() if held.isup and any(map(_is_own, addresses.get(name, ())))]
    return tuple(sorted(found, key=lambda name: (name != _LOOPBACK, name))[:_MOST_INTERFACES])


def _is_own(address: object) -> bool:
    family, text = getattr(address, "family", None), str(getattr(address, "address", ""))
    return family == socket.AF_INET or (family == socket.AF_INET6 and not text.startswith("fe80"))


def _read_retransmitted(snmp: Path) -> dict[str, int]:
    try:
        names, values = (
            line.split()[1:] for line in snmp.read_text().splitlines() if line.startswith("Tcp:")
        )
        return {"retransmitted": int(dict(zip(names, values, strict=True))["RetransSegs"])}
    except (OSError, ValueError, KeyError):
        return {}


def _sum(grown: Mapping[str, float], name: str, counts: Iterable[str]) -> float:
    return sum(grown.get(f"{name} {count}", math.nan) for count in counts)


def _whole(count: float) -> int:
    """A count that is not known is -1 in the run log."""
    return -1 if math.isnan(count) else int(count)
