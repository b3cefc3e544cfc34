"""What the server counts, as text for Prometheus."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import psutil

from tandem.serve.batcher import Batched

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
LINES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)

Labels = tuple[tuple[str, str], ...]


class _Histogram:
    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str, labels: Labels) -> Iterator[str]:
        total = 0
        for bound, count in zip([*map(str, self._bounds), "+Inf"], self._counts, strict=True):
            total += count
            yield _sample(f"{name}_bucket", (*labels, ("le", bound)), total)
        yield _sample(f"{name}_sum", labels, self._sum)
        yield _sample(f"{name}_count", labels, total)


class Metrics:
    """Counts of one server; only its event loop touches them."""

    def __init__(self, queues: Mapping[str, Callable[[], int]]) -> None:
        """`queues` tells how many lines wait for each model."""
        self.open = 0
        """Requests to translate that were taken on and are not answered."""
        self._queues = queues
        self._requests: Counter[Labels] = Counter()
        self._gone = 0
        self._seconds = _Histogram(SECONDS)
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in queues}
        self._batch_lines = {name: _Histogram(LINES) for name in queues}
        self._batch_seconds = {name: _Histogram(SECONDS) for name in queues}

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self._requests[(("path", path), ("status", str(status)))] += 1
        if path == "/translate":
            self._seconds.add(seconds)

    def gone(self) -> None:
        """Count a request whose client did not wait for the answer."""
        self._gone += 1

    def batch(self, model: str, told: Batched) -> None:
        """Count a batch."""
        counts = self._counts[model]
        counts["lines"] += told.lines
        counts["characters"] += told.characters
        counts["pieces"] += told.pieces
        self._batch_lines[model].add(told.lines)
        self._batch_seconds[model].add(told.seconds)

    def render(self) -> str:
        """All of it."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _head("tandem_requests_total", "counter", "Answers by path and status.")
        for labels, count in sorted(self._requests.items()):
            yield _sample("tandem_requests_total", labels, count)
        yield from _head("tandem_requests_gone_total", "counter", "Requests whose client did not wait.")
        yield _sample("tandem_requests_gone_total", (), self._gone)
        yield from _head(
            "tandem_translate_seconds", "histogram", "From a request to translate to its answer."
        )
        yield from self._seconds.lines("tandem_translate_seconds", ())
        yield from _head("tandem_requests_open", "gauge", "Requests taken on and not answered.")
        yield _sample("tandem_requests_open", (), self.open)
        yield from _head("tandem_queue_lines", "gauge", "Lines that wait for a batch.")
        for model, waiting in self._queues.items():
            yield _sample("tandem_queue_lines", (("model", model),), waiting())
        for unit, meaning in (
            ("lines", "Lines translated."),
            ("characters", "Source characters translated."),
            ("pieces", "Target pieces made."),
        ):
            yield from _head(f"tandem_translated_{unit}_total", "counter", meaning)
            for model, counts in self._counts.items():
                yield _sample(f"tandem_translated_{unit}_total", (("model", model),), counts[unit])
        for name, meaning, histograms in (
            ("tandem_batch_lines", "Lines of a batch.", self._batch_lines),
            ("tandem_batch_seconds", "Time of a batch.", self._batch_seconds),
        ):
            yield from _head(name, "histogram", meaning)
            for model, histogram in histograms.items():
                yield from histogram.lines(name, (("model", model),))
        yield from _head("process_resident_memory_bytes", "gauge", "Memory of the server.")
        yield _sample("process_resident_memory_bytes", (), psutil.Process().memory_info().rss)


def _head(name: str, kind: str, meaning: str) -> tuple[str, str]:
    return f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"


def _sample(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
    return f"{name}{{{inside}}} {value}" if inside else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
