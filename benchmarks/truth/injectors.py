"""Faults that are really done to a run, each with a count of its own of what it did."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from benchmarks.truth.scene import Scene

__all__ = [
    "Account",
    "Injector",
    "half_duplex",
    "hogged",
    "interrupted",
    "link",
    "one_way",
    "stopped",
    "swapping",
    "weak",
]

_DEVICE = "eth0"
_SWAP_BYTES = 2**30


@dataclass(slots=True, kw_only=True)
class Account:
    """What an injector did, by its own clock and by what the kernel says."""

    begun_ns: int = 0
    ended_ns: int = 0
    injected_s: float = 0.0
    """In which the fault was there; of one that comes and goes, the sum."""
    times: int = 0
    said: list[str] = field(default_factory=list)
    """What tc and the kernel say of it."""


Injector: TypeAlias = Callable[[Scene, Account], AbstractContextManager[None]]
"""The fault is there inside the block."""
Turn: TypeAlias = Callable[[], None]


def link(*words: str, host: str = "h2", on_s: float = 0.0, off_s: float = 0.0) -> Injector:
    """A link of the lab as `tandem lab link` makes it; with turns, again and again for `on_s` of each period."""
    healthy = {"rate": "none", "delay": "0ms", "loss": "0%"}
    back = ["up"] if words == ("down",) else [word for key in words[::2] for word in (key, healthy[key])]

    @contextmanager
    def inject(scene: Scene, account: Account) -> Iterator[None]:
        lab = scene.lab
        assert lab is not None

        def begin() -> None:
            lab.link(host, *words)
            if not account.said:
                account.said += [str(lab.link_of(host)), _tc(scene, host, "qdisc", "show", "dev", _DEVICE)]

        with _turns(account, begin, lambda: _nothing(lab.link(host, *back)), on_s=on_s, off_s=off_s):
            yield

    return inject


def one_way(rate: str, *, host: str = "h2") -> Injector:
    """What one host sends is slow, and what it gets is not."""

    @contextmanager
    def inject(scene: Scene, account: Account) -> Iterator[None]:
        def begin() -> None:
            shape = ("tbf", "rate", rate, "burst", "64kb", "latency", "50ms")
            _tc(scene, host, "qdisc", "replace", "dev", _DEVICE, "root", *shape)
            account.said.append(_tc(scene, host, "qdisc", "show", "dev", _DEVICE))

        def end() -> None:
            account.said.append(_tc(scene, host, "-s", "qdisc", "show", "dev", _DEVICE))
            _tc(scene, host, "qdisc", "del", "dev", _DEVICE, "root")

        with _turns(account, begin, end):
            yield

    return inject


def half_duplex(rate: str, *, host: str = "h2", turn_s: float = 0.05) -> Injector:
    """One direction sends at a time, in turns: each carries half of the rate."""

    @contextmanager
    def inject(scene: Scene, account: Account) -> Iterator[None]:
        lab = scene.lab
        assert lab is not None
        other = next(each for each in lab.hosts if each != host)
        # Both ends hold back what they send; with two hosts that is both directions.
        tcs = {each: _tc_pipe(scene, each) for each in (host, other)}
        over = threading.Event()

        def shape(each: str, speed: str, verb: str = "change") -> None:
            shaped = f"tbf rate {speed} burst 32kb limit 4mb"
            pipe = tcs[each].stdin
            assert pipe is not None
            pipe.write(f"qdisc {verb} dev {_DEVICE} root {shaped}\n")
            pipe.flush()

        def alternate() -> None:
            for each in tcs:
                shape(each, "100kbit", "replace")
            account.said.append(_await_shape(scene, host, over))
            while not over.is_set():
                for sends, waits in ((host, other), (other, host)):
                    shape(waits, "100kbit")
                    shape(sends, rate)
                    account.times += 1
                    over.wait(turn_s)

        def end() -> None:
            over.set()
            turning.join()
            for each, process in tcs.items():
                process.communicate()
                _tc(scene, each, "qdisc", "del", "dev", _DEVICE, "root")

        turning = threading.Thread(target=alternate)
        with _turns(account, turning.start, end):
            yield

    return inject


def stopped(*ranks: int, on_s: float, off_s: float, host: str = "") -> Injector:
    """Ranks that are stopped by SIGSTOP for `on_s` and go on for `off_s`; with `host` all that runs there."""

    @contextmanager
    def inject(scene: Scene, account: Account) -> Iterator[None]:
        pids = [pid for rank, pid in scene.workers().items() if rank in ranks]

        def send(number: signal.Signals) -> None:
            if host and scene.lab is not None:
                scene.lab.signal(host, number)
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)

        with _turns(
            account,
            lambda: send(signal.SIGSTOP),
            lambda: send(signal.SIGCONT),
            on_s=on_s,
            off_s=off_s,
        ):
            yield

    return inject


def hogged(rank: int, *, hogs: int) -> Injector:
    """A rank shares its only core with processes that never rest."""

    @contextmanager
    def inject(scene: Scene, account: Account) -> Iterator[None]:
        pid = scene.workers()[rank]
        every, core = os.sched_getaffinity(pid), rank % (os.cpu_count() or 1)
        running: list[subprocess.Popen[bytes]] = []

        def begin() -> None:
            _pin(pid, {core})
            for _ in range(hogs):
                running.append(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
                os.sched_setaffinity(running[-1].pid, {core})

        def end() -> None:
            spent = [sum(os.times()[2:4])]
            for hog in running:
                hog.kill()
                hog.wait()
            spent.append(sum(os.times()[2:4]))
            account.said.append(f"{hogs} processes took {spent[1] - spent[0]:.1f} s of core {core}")
            # The run may be over, and its rank gone.
            with suppress(ProcessLookupError, FileNotFoundError):
                _pin(pid, every)

        with _turns(account, begin, end):
            yield

    return inject


def interrupted() -> Injector:
    """The run is asked to stop, as by Ctrl-C."""

    @contextmanager
    def inject(scene: Scene, account: Account) -> Iterator[None]:
        account.begun_ns = time.time_ns()
        scene.process.send_signal(signal.SIGINT)
        yield

    return inject


def weak(**how: float | Sequence[int]) -> Injector:
    """Ranks of this machine with a slow reader or a slow disk, as `weak/sitecustomize.py` knows them."""

    @contextmanager
    def inject(scene: Scene, account: Account) -> Iterator[None]:
        def begin() -> None:
            new = scene.weak.with_suffix(".new")
            new.write_text(json.dumps(how))
            new.rename(scene.weak)

        def end() -> None:
            scene.weak.unlink()
            lost = {
                path.stem: sum(map(float, path.read_text().split()))
                for path in scene.folder.glob("weak-*.txt")
            }
            account.said.append(f"seconds that were added: {json.dumps(lost, sort_keys=True)}")

        with _turns(account, begin, end):
            yield

    return inject


def swapping(*, share: float) -> Injector:
    """All of a run on this machine may keep this share of the memory that it has; the rest is swapped out and in."""

    @contextmanager
    def inject(scene: Scene, account: Account) -> Iterator[None]:
        swap, limit = scene.folder / "swap", scene.group / "memory.limit_in_bytes"

        def begin() -> None:
            with swap.open("wb") as file:
                file.write(bytes(_SWAP_BYTES))
            swap.chmod(0o600)
            for words in (["mkswap", str(swap)], ["swapon", str(swap)]):
                subprocess.run(words, check=True, capture_output=True)
            rows = dict(line.split() for line in (scene.group / "memory.stat").read_text().splitlines())
            kept = int(int(rows["total_rss"]) * share)
            account.said.append(f"{rows['total_rss']} bytes, of which {kept} may stay; {_swapped()}")
            limit.write_text(str(kept))

        def end() -> None:
            account.said.append(_swapped())
            limit.write_text("-1")
            subprocess.run(["swapoff", str(swap)], check=True)
            swap.unlink()

        with _turns(account, begin, end):
            yield

    return inject


@contextmanager
def _turns(
    account: Account, begin: Turn, end: Turn, *, on_s: float = 0.0, off_s: float = 0.0
) -> Iterator[None]:
    """The fault for the whole block, or with `off_s` in turns; what began is always ended."""
    over = threading.Event()
    failed: list[Exception] = []

    def once(lasting_s: float | None) -> None:
        begin()
        tick = time.monotonic()
        try:
            over.wait(lasting_s)
        finally:
            account.injected_s += time.monotonic() - tick
            end()

    def alternate() -> None:
        try:
            while not over.is_set():
                account.times += 1
                once(on_s if off_s else None)
                over.wait(off_s)
        except Exception as error:  # noqa: BLE001 - a fault that did not come about makes the label wrong
            failed.append(error)

    turning = threading.Thread(target=alternate)
    account.begun_ns = time.time_ns()
    turning.start()
    try:
        yield
    finally:
        account.ended_ns = time.time_ns()
        over.set()
        turning.join()
    if failed:
        raise RuntimeError(f"the fault could not be made or unmade: {failed[0]}") from failed[0]


def _tc(scene: Scene, host: str, *words: str) -> str:
    """Run tc in a host; what it said."""
    command = ["tc", "-n", scene.namespace(host), *words]
    if words[0] == "-s":
        command = ["tc", "-s", "-n", scene.namespace(host), *words[1:]]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _await_shape(scene: Scene, host: str, over: threading.Event) -> str:
    """What tc shows of a host once a pipe to it, which takes its time, has shaped the link."""
    while "tbf" not in (said := _tc(scene, host, "qdisc", "show", "dev", _DEVICE)):
        if over.wait(0.01):
            break
    return said


def _tc_pipe(scene: Scene, host: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        ["tc", "-force", "-n", scene.namespace(host), "-batch", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _pin(pid: int, cores: set[int]) -> None:
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread.name), cores)


def _swapped() -> str:
    rows = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return f"the machine swapped in {rows['pswpin']} pages and out {rows['pswpout']} since it started"


def _nothing(_: object) -> None:
    """For a turn that gives something back."""
