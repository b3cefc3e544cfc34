"""Asks whether `tandem serve` holds under load: right answers, bounded memory, refusals that help, an orderly end."""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from tandem.cli.library import load_translator
from tandem.data.corpus.builtin import builtin_pairs
from tandem.translate.open import EngineName

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.http_client import Answer, CutError, HttpClient
from benchmarks.machine import describe_machine, machine_slug
from benchmarks.serve_crowd import HEAD, Crowd, is_right

__all__ = ["main"]

_RESULTS = Path(__file__).parent / "results"
_SEED = 20_260_101
_TEXTS = 400
_MALFORMED = 0.05
_ALONE_S = 10.0
_SETTLED_S = 10.0

_DEFINITIONS = {
    "texts": "drawn from the built-in grammar's test sentences: words, sentences, paragraphs of up to eight "
    "sentences on one line, and several lines; each client sends one after the other, on a kept connection",
    "malformed": "5 % of the requests: broken JSON, wrong types, unknown languages, too long, lone surrogates, …; "
    "each must get the status that is documented",
    "alone": "one client, the same texts: what the server does where there is nothing to batch",
    "wrong": "answers that differ from the offline translation of the same text, or a malformed request's other status",
    "latency": "from sending a well-formed request to having its whole answer, in ms",
    "rss": "resident memory of the server, sampled twice a second; settled: the most within the first 10 s",
    "crowd": "as many clients at a server with a short queue, without malformed requests; one that is refused is sent "
    "again when Retry-After says; refused: answers of 429; refused_requests: requests that got one or more of them; "
    "lost: those that were still refused at the 60th try",
    "cut": "requests that were sent when SIGTERM came, or after it, and whose connection ended without an answer",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    body: bytes
    status: int
    text: str | None
    """The right translation; none for malformed requests."""


@dataclass(slots=True)
class _Tally:
    latencies_ms: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    lines: int = 0
    wrong: int = 0
    malformed: int = 0
    cut: int = 0
    refused_connections: int = 0

    def take(self, ask: _Ask, answer: Answer, seconds: float) -> None:
        self.statuses[answer.status] += 1
        if ask.text is None:
            self.malformed += 1
            self.wrong += answer.status != ask.status
            return
        self.latencies_ms.append(1000 * seconds)
        if answer.status == 200:
            self.lines += 1 + ask.text.count("\n")
        if answer.status != 429:
            self.wrong += not is_right(answer, ask.text)

    def told(self, seconds: float) -> dict[str, Any]:
        ordered = sorted(self.latencies_ms)
        return {
            "requests": sum(self.statuses.values()),
            "malformed": self.malformed,
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
            "wrong": self.wrong,
            "errors_5xx": sum(count for status, count in self.statuses.items() if status >= 500),
            "requests_per_s": round(len(ordered) / seconds, 1),
            "lines_per_s": round(self.lines / seconds, 1),
            "p50_ms": round(ordered[len(ordered) // 2], 1),
            "p99_ms": round(ordered[len(ordered) * 99 // 100], 1),
        }


def main() -> None:
    """Measure, write the result file and print the table; the exit says whether all held."""
    options = _read_options()
    machine = describe_machine({})
    asks = _build_asks(options.model, options.engine)
    result: dict[str, Any] = {
        "benchmark": "serve-load",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine,
        "definitions": _DEFINITIONS,
        "model": options.model.name,
        "engine": options.engine,
        "clients": options.clients,
        "seconds": options.seconds,
        **asyncio.run(_measure(options, asks)),
        "crowd": {
            "queue": options.queue,
            "seconds": options.crowd_seconds,
            **asyncio.run(_crowd(options, asks)),
        },
    }
    path = _write_result(result, options.out)
    _print_table(result)
    print(f"written to {os.path.relpath(path)}")
    sys.exit(0 if _held(result) else 1)


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "model", type=Path, help="run, checkpoint, bundle or exported folder, English to another"
    )
    parser.add_argument("--engine", choices=["auto", "torch", "ctranslate2"], default="auto")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--alone-seconds", type=float, default=_ALONE_S, help="of one client, before")
    parser.add_argument(
        "--crowd-seconds", type=float, default=10.0, help="at a server with a short queue, after"
    )
    parser.add_argument("--queue", type=int, default=16, help="lines that may wait at that server")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    return parser.parse_args()


def _build_asks(model: Path, engine: EngineName) -> list[_Ask]:
    """Well-formed requests with their right answers, translated offline, and malformed ones among them."""
    dice = random.Random(_SEED)  # noqa: S311  (nothing is kept secret)
    texts = _draw_texts(dice)
    lines = [line for text in texts for line in text.split("\n")]
    translations = iter(load_translator(model, engine=engine).translate(lines))
    asks = []
    for text in texts:
        right = "\n".join(next(translations).text for _ in text.split("\n"))
        asks.append(_Ask(body=json.dumps({"text": text}).encode(), status=200, text=right))
    return asks


def _draw_texts(dice: random.Random) -> list[str]:
    sentences = [source for source, _ in builtin_pairs(seed=_SEED, split="test", count=2_000)]

    def some(most: int) -> list[str]:
        return dice.sample(sentences, dice.randint(1, most))

    kinds: Sequence[tuple[float, Callable[[], str]]] = (
        (0.2, lambda: dice.choice(dice.choice(sentences).split())),
        (0.5, lambda: dice.choice(sentences)),
        (0.15, lambda: " ".join(some(8))),
        (0.15, lambda: "\n".join(some(6))),
    )
    weights = [weight for weight, _ in kinds]
    return [dice.choices([draw for _, draw in kinds], weights)[0]() for _ in range(_TEXTS)]


_BAD: Sequence[tuple[bytes, int]] = (
    (b"", 400),
    (b'{"text": "a', 400),
    (b'\xff\xfe{"text": "a"}', 400),
    (b"[" * 50_000, 400),
    (b"[1, 2]", 422),
    (b'{"text": 7}', 422),
    (b'{"text": "a", "beam": 1000}', 422),
    (b'{"text": "a", "target": "xx"}', 422),
    (b'{"text": "a", "unknown": 1}', 422),
    (json.dumps({"text": "word " * 10_000}).encode(), 413),
    (json.dumps({"text": "x" * 1_000_000}).encode(), 413),
    (b'{"text": "a\\ud800\\u0000\\u001b b"}', 200),
)


async def _measure(options: argparse.Namespace, asks: Sequence[_Ask]) -> dict[str, Any]:
    memory: list[tuple[float, int]] = []
    async with _serving(options) as (process, port):
        alone = await _load(port, asks, clients=1, seconds=options.alone_seconds, malformed=0.0)
        sampler = asyncio.create_task(_sample(process.pid, memory))
        load = await _load(port, asks, clients=options.clients, seconds=options.seconds, malformed=_MALFORMED)
        sampler.cancel()
        ending = await _end(process, port, asks, clients=options.clients)
    return {
        "alone": alone,
        "load": load,
        "throughput_ratio": round(load["lines_per_s"] / alone["lines_per_s"], 2),
        "rss": _memory(memory),
        "sigterm": ending,
    }


async def _crowd(options: argparse.Namespace, asks: Sequence[_Ask]) -> dict[str, Any]:
    """Send more than a short queue takes, and what is refused once more."""
    crowd = Crowd()

    async def client(port: int, number: int, until: float) -> None:
        dice = random.Random(_SEED + number)  # noqa: S311
        async with HttpClient(port) as http:
            while time.monotonic() < until:
                ask = dice.choice(asks)
                await crowd.send(http, ask.body, right=ask.text)

    async with _serving(options, "--queue", str(options.queue)) as (_, port):
        until = time.monotonic() + options.crowd_seconds
        await asyncio.gather(*(client(port, number, until) for number in range(options.clients)))
    return crowd.told()


@asynccontextmanager
async def _serving(
    options: argparse.Namespace, *words: str
) -> AsyncIterator[tuple[subprocess.Popen[str], int]]:
    """A server and its port, until the end of this context."""
    command = [sys.executable, "-m", "tandem", "serve", str(options.model), "--port", "0"]
    process = subprocess.Popen(
        [*command, "--engine", options.engine, *words], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        port = await asyncio.to_thread(_read_port, process)
        # What the server says is read on, or it would wait for a reader.
        reading = asyncio.create_task(asyncio.to_thread(process.stderr.read))
        yield process, port
    finally:
        process.kill()
        process.wait()
    await reading


def _read_port(process: subprocess.Popen[str]) -> int:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("Translating at "):
            return int(line.rstrip("/\n").rpartition(":")[2])
    raise SystemExit("the server did not start")


async def _load(
    port: int, asks: Sequence[_Ask], *, clients: int, seconds: float, malformed: float
) -> dict[str, Any]:
    tally = _Tally()
    until = time.monotonic() + seconds

    async def client(number: int) -> None:
        dice = random.Random(_SEED + number)  # noqa: S311
        async with HttpClient(port) as http:
            while time.monotonic() < until:
                await _once(http, _draw(dice, asks, malformed), tally)

    begun = time.monotonic()
    await asyncio.gather(*(client(number) for number in range(clients)))
    return tally.told(time.monotonic() - begun)


def _draw(dice: random.Random, asks: Sequence[_Ask], malformed: float) -> _Ask:
    if dice.random() >= malformed:
        return dice.choice(asks)
    body, status = dice.choice(_BAD)
    return _Ask(body=body, status=status, text=None)


async def _once(http: HttpClient, ask: _Ask, tally: _Tally) -> None:
    begun = time.perf_counter()
    answer = await http.post("/translate", ask.body, headers=HEAD)
    tally.take(ask, answer, time.perf_counter() - begun)


async def _sample(pid: int, memory: list[tuple[float, int]]) -> None:
    server = psutil.Process(pid)
    begun = time.monotonic()
    while True:
        memory.append((time.monotonic() - begun, server.memory_info().rss))
        await asyncio.sleep(0.5)


def _memory(memory: Sequence[tuple[float, int]]) -> dict[str, Any]:
    settled = max(rss for at, rss in memory if at <= _SETTLED_S)
    most = max(rss for _, rss in memory)
    return {
        "first_bytes": memory[0][1],
        "settled_bytes": settled,
        "most_bytes": most,
        "growth": round(most / settled - 1, 4),
    }


async def _end(
    process: subprocess.Popen[str], port: int, asks: Sequence[_Ask], *, clients: int
) -> dict[str, Any]:
    """Send SIGTERM while all clients wait for answers; each goes on until no connection is to be had."""
    tally = _Tally()
    busy = asyncio.Event()

    async def client(number: int) -> None:
        dice = random.Random(_SEED - number)  # noqa: S311
        async with HttpClient(port) as http:
            while await _until_refused(_once(http, _draw(dice, asks, _MALFORMED), tally), tally):
                busy.set()

    running = [asyncio.create_task(client(number)) for number in range(clients)]
    await busy.wait()
    before = sum(tally.statuses.values())
    begun = time.monotonic()
    process.send_signal(signal.SIGTERM)
    await asyncio.gather(*running)
    code = await asyncio.to_thread(process.wait)
    return {
        "exit_code": code,
        "seconds": round(time.monotonic() - begun, 2),
        "answered_after": sum(tally.statuses.values()) - before,
        "wrong": tally.wrong,
        "errors_5xx": sum(count for status, count in tally.statuses.items() if status >= 500),
        "cut": tally.cut,
        "refused_connections": tally.refused_connections,
    }


async def _until_refused(once: Awaitable[None], tally: _Tally) -> bool:
    try:
        await once
    except ConnectionRefusedError:
        tally.refused_connections += 1
        return False
    except CutError:
        tally.cut += 1
    return True


def _held(result: Mapping[str, Any]) -> bool:
    crowd, sigterm = result["crowd"], result["sigterm"]
    parts = [result["alone"], result["load"], sigterm, crowd]
    whole = not any(part["wrong"] or part["errors_5xx"] for part in parts)
    ended = sigterm["exit_code"] == 0 and sigterm["cut"] == 0
    return whole and ended and crowd["refused"] > 0 and not (crowd["without_retry_after"] or crowd["lost"])


def _write_result(result: Mapping[str, Any], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['date']}-serve-load-{machine_slug()}.json"
    beside = path.with_suffix(".partial")
    beside.write_text(json.dumps(result, indent=1) + "\n")
    return beside.replace(path)


def _print_table(result: Mapping[str, Any]) -> None:
    table = Table("", "requests", "lines/s", "p50 ms", "p99 ms", "wrong", "5xx")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, meaning in (("alone", "one at a time"), ("load", f"{result['clients']} clients")):
        part = result[name]
        table.add_row(
            meaning,
            f"{part['requests']:,}",
            f"{part['lines_per_s']:,.1f}",
            f"{part['p50_ms']:,.0f}",
            f"{part['p99_ms']:,.0f}",
            str(part["wrong"]),
            str(part["errors_5xx"]),
        )
    console = Console(highlight=False)
    console.print(table)
    rss, end, crowd = result["rss"], result["sigterm"], result["crowd"]
    console.print(
        f"memory {rss['settled_bytes'] / 1e6:,.0f} MB after 10 s, {rss['most_bytes'] / 1e6:,.0f} MB at most; SIGTERM: "
        f"exit {end['exit_code']} after {end['seconds']} s, {end['answered_after']} answered, {end['cut']} cut",
        soft_wrap=True,
    )
    console.print(
        f"queue of {crowd['queue']}: {crowd['refused']:,} refusals of {crowd['refused_requests']:,} requests, "
        f"{crowd['without_retry_after']} without Retry-After; {crowd['lost']} lost, {crowd['wrong']} wrong, "
        f"{crowd['errors_5xx']} 5xx, {crowd['most_tries']} tries at most",
        soft_wrap=True,
    )


if __name__ == "__main__":
    main()
