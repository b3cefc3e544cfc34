"""What the hosts of a run do as named numbers: means over some seconds of their samples."""

import math
from collections.abc import Iterator

from tandem.observe.watch.hosts import Moment, WatchedHost
from tandem.runlog.event import HostDescribed, HostSampled
from tandem.runlog.record import Record

__all__ = ["HostWindows"]

EVERY_S = 15.0
NANO = 1_000_000_000


class HostWindows:
    """Gathers the samples of each host over fifteen seconds."""

    def __init__(self) -> None:
        self._hosts: dict[str, WatchedHost] = {}

    def take(self, record: Record) -> dict[str, float] | None:
        """Take a record of any writer; gives the means of its host's window when that is full."""
        match record.event:
            case HostDescribed() as described if record.host is not None:
                self._hosts[record.host] = WatchedHost(name=record.host, described=described)
            case HostSampled() as sample if record.host in self._hosts:
                host = self._hosts[record.host]
                host.add(record.time_ns, sample)
                # A clock that was put back must not keep a window open.
                if abs(record.time_ns - host.moments[0].time_ns) >= EVERY_S * NANO:
                    means = dict(_means(host))
                    host.moments.clear()
                    return means
        return None


def _means(host: WatchedHost) -> Iterator[tuple[str, float]]:
    rows = [dict(_named(host, moment)) for moment in host.moments]
    for name in rows[0]:
        known = [row[name] for row in rows if not math.isnan(row[name])]
        if known:
            yield f"system/{host.name}/{name}", math.fsum(known) / len(known)


def _named(host: WatchedHost, moment: Moment) -> Iterator[tuple[str, float]]:
    yield "cpu_share", moment.cpu
    yield "memory_bytes", moment.memory_bytes
    for number in range(len(host.described.gpus)):
        yield f"gpu{number}/utilisation_share", moment.gpu_utilisation[number]
        yield f"gpu{number}/memory_bytes", moment.gpu_memory_bytes[number]
        yield f"gpu{number}/power_w", moment.gpu_power_w[number]
        yield f"gpu{number}/temperature_c", moment.gpu_temperature_c[number]
    for number, name in enumerate(host.described.interfaces):
        yield f"{name}/received_bytes_per_s", moment.received_bytes_per_s[number]
        yield f"{name}/sent_bytes_per_s", moment.sent_bytes_per_s[number]
