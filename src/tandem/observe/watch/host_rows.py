"""Hosts as pieces of the display: one row each, or where there is room every GPU and interface."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tandem.observe.delivered import LOOPBACK, Delivered
from tandem.observe.numbers import duration, link_rate
from tandem.observe.visible import visible
from tandem.observe.watch.chart import draw_spark
from tandem.observe.watch.columns import GAP, fitting
from tandem.observe.watch.hosts import Moment, WatchedHost

__all__ = ["HostRows"]

GIB = 1 << 30
WIDE = 110
NARROW = 66
NAME_CELLS = 14
GPU_CELLS = 50
FULL = 0.9
"""Share of a link from which it is marked as full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRows:
    """What the hosts do, within so many columns."""

    hosts: Sequence[WatchedHost]
    width: int
    now_ns: int
    ascii_only: bool
    delivered: Callable[[WatchedHost, int], Delivered | None]
    """What the link behind an interface was seen to carry."""

    @property
    def most(self) -> int:
        """Rows that all there is to show takes."""
        return sum(map(self._rows_of, self.hosts)) if self.width >= WIDE else len(self.hosts)

    def draw(self, rows: int) -> list[RenderableType]:
        """As much as goes into these rows."""
        if rows >= self.most and self.width >= WIDE:
            return [row for host in self.hosts for row in self._whole(host)]
        shown = self.hosts if rows >= len(self.hosts) else self.hosts[: rows - 1]
        rest = len(self.hosts) - len(shown)
        return [self._short_rows(shown), *([Text(f"and {rest} more hosts", "dim")] if rest else [])]

    def _rows_of(self, host: WatchedHost) -> int:
        return 1 + -(-len(host.described.gpus) // self._gpus_a_row)

    @property
    def _gpus_a_row(self) -> int:
        return max(1, self.width // GPU_CELLS)

    def _short_rows(self, hosts: Sequence[WatchedHost]) -> Table:
        drawn = [self._short(host) for host in hosts]
        columns = {
            str(place): [cells[place] for cells in drawn if place < len(cells)]
            for place in range(max(map(len, drawn), default=0))
        }
        names = [Text(_cut(host.name, NAME_CELLS)) for host in hosts]
        kept = len(fitting({"name": names, **columns}, width=self.width)) - 1
        taken = sum(GAP + max(cell.cell_len for cell in columns[str(place)]) for place in range(kept))
        table = Table.grid(padding=(0, GAP, 0, 0))
        for place in range(kept + 1):
            table.add_column(no_wrap=True, overflow="ellipsis", justify="right" if place > 1 else "left")
        for host, cells in zip(hosts, drawn, strict=True):
            table.add_row(Text(_cut(host.name, max(NAME_CELLS, self.width - taken)), "bold"), *cells[:kept])
        return table

    def _short(self, host: WatchedHost) -> list[Text]:
        """One row behind the name: the GPUs together, the interface that carries most, the CPU."""
        last = host.last
        if last is None or host.age_s(self.now_ns) is not None:
            return [self._stale(host)]
        gpus, busy = len(host.described.gpus), _mean(last.gpu_utilisation)
        cells: list[Text] = []
        if gpus:
            label = f"{gpus} GPUs" if gpus > 1 else "GPU"
            spark = self._spark(host, lambda each: _mean(each.gpu_utilisation), cells=12, top=1.0)
            cells += [Text.assemble(f"{label} ", spark, f" {_percent(busy)}")]
            cells += [_heat(last)] if self.width >= NARROW else []
            cells += [Text(f"{_total(last.gpu_power_w):,.0f} W")] if self.width >= WIDE else []
        carrier = _busiest(host)
        if carrier is not None:
            cells += [self._traffic(host, carrier)]
        return [*cells, Text(f"cpu {_percent(last.cpu)}")]

    def _traffic(self, host: WatchedHost, interface: int) -> Text:
        """The busier direction of an interface."""
        last = host.moments[-1]
        sent, received = last.sent_bytes_per_s[interface], last.received_bytes_per_s[interface]
        is_up = not received > sent
        arrow = ("^" if is_up else "v") if self.ascii_only else ("↑" if is_up else "↓")
        text = Text(f"{visible(host.described.interfaces[interface])} {arrow} ")
        text.append_text(self._rate(host, interface, is_up=is_up))
        if self.width >= NARROW:
            text.append_text(self._link(host, interface, is_whole=False))
        return text

    def _whole(self, host: WatchedHost) -> Iterator[RenderableType]:
        last = host.last
        head = Text(_cut(host.name, self.width // 3), "bold", no_wrap=True, overflow="ellipsis")
        if last is None or host.age_s(self.now_ns) is not None:
            yield head.append("  ").append_text(self._stale(host))
            return
        head.append("  cpu ", "default")
        head.append_text(self._spark(host, lambda each: each.cpu, cells=12, top=1.0))
        head.append(f" {_percent(last.cpu)}", "not bold")
        for interface in _carriers(host):
            head.append(f"   {visible(host.described.interfaces[interface])}", "not bold")
            for is_up, arrow in ((True, "↑"), (False, "↓")):
                head.append(f" {arrow} ", "not bold")
                head.append_text(self._rate(host, interface, is_up=is_up))
            head.append_text(self._link(host, interface, is_whole=True))
        yield head
        if host.described.gpus:
            yield self._gpus(host, last)

    def _gpus(self, host: WatchedHost, last: Moment) -> Table:
        table = Table.grid(padding=(0, 2, 0, 0))
        cells = [self._gpu(host, last, gpu) for gpu in range(len(host.described.gpus))]
        for start in range(0, len(cells), self._gpus_a_row):
            table.add_row(*cells[start : start + self._gpus_a_row])
        for column in table.columns:
            column.no_wrap = True
        return table

    def _gpu(self, host: WatchedHost, last: Moment, gpu: int) -> Text:
        spark = self._spark(host, lambda each: each.gpu_utilisation[gpu], cells=10, top=1.0)
        style = "yellow" if last.gpu_throttled[gpu] else ""
        used, whole = last.gpu_memory_bytes[gpu], host.described.gpu_memory_bytes[gpu]
        return Text.assemble(
            f"  gpu{gpu} ",
            spark,
            f" {_percent(last.gpu_utilisation[gpu]):>5}",
            (f" {_number(last.gpu_temperature_c[gpu])} °C{'!' if style else ' '}", style),
            f"{_number(last.gpu_power_w[gpu]):>4} W",
            "" if math.isnan(used) else f" {used / GIB:3.0f}/{whole / GIB:.0f} GiB",
        )

    def _rate(self, host: WatchedHost, interface: int, *, is_up: bool) -> Text:
        """Of one direction, now and in the last minutes."""

        def of(each: Moment) -> float:
            return (each.sent_bytes_per_s if is_up else each.received_bytes_per_s)[interface]

        link = self.delivered(host, interface)
        top, now = link.bytes_per_s if link else 0.0, of(host.moments[-1])
        # The highest rate that was seen is no limit.
        style = "yellow" if link and link.is_measured and now > FULL * top else ""
        spark = self._spark(host, of, cells=8, top=top) if self.width >= WIDE else Text()
        return Text.assemble((link_rate(now), style), " " if spark else "", spark)

    def _link(self, host: WatchedHost, interface: int, *, is_whole: bool) -> Text:
        """What the link delivers; where all of the host is shown, also what the interface claims."""
        link, bits = self.delivered(host, interface), _nominal(host, interface)
        text = ""
        if link is not None:
            text = f"{' of' if link.is_measured else ', max'} {link_rate(link.bytes_per_s)}"
        claim = f" (nominal {link_rate(bits / 8)})" if bits and is_whole else ""
        return Text(f"{text}{claim}", "dim")

    def _spark(self, host: WatchedHost, of: Callable[[Moment], float], *, cells: int, top: float) -> Text:
        drawn = draw_spark(
            [of(each) for each in host.moments], width=cells, top=top, ascii_only=self.ascii_only
        )
        return Text(drawn.ljust(cells), "blue")

    def _stale(self, host: WatchedHost) -> Text:
        age_s = host.age_s(self.now_ns)
        if age_s is None:
            return Text("no sample yet", "dim")
        return Text(f"no sample for {duration(age_s)}", "bold red")


def _cut(name: str, cells: int) -> str:
    text = Text(visible(name))
    text.truncate(cells, overflow="ellipsis")
    return text.plain


def _busiest(host: WatchedHost) -> int | None:
    return next(iter(_carriers(host)), None)


def _carriers(host: WatchedHost) -> list[int]:
    """Interfaces to other hosts that carried anything, the busiest first, two at most."""
    traffic = {
        number: sum(
            _known(each.sent_bytes_per_s[number]) + _known(each.received_bytes_per_s[number])
            for each in host.moments
        )
        for number, name in enumerate(host.described.interfaces)
        if name != LOOPBACK
    }
    return sorted((number for number in traffic if traffic[number]), key=lambda number: -traffic[number])[:2]


def _nominal(host: WatchedHost, interface: int) -> int:
    speeds = host.described.interface_bits_per_s
    return max(0, speeds[interface]) if interface < len(speeds) else 0


def _heat(last: Moment) -> Text:
    """Of the hottest; marked where one is held down."""
    known = [each for each in last.gpu_temperature_c if not math.isnan(each)]
    is_slow = any(last.gpu_throttled)
    text = f"{max(known):.0f} °C" if known else ""
    return Text(text + ("!" if is_slow else ""), "yellow" if is_slow else "")


def _known(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def _total(values: Sequence[float]) -> float:
    return sum(map(_known, values))


def _percent(part: float) -> str:
    return "–" if math.isnan(part) else f"{part:.0%}".replace("%", " %")


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.0f}"
