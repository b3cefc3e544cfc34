"""A dashboard as a process of its own, a browser to look at it, and a real run to be looked at."""

import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tandem.runlog.layout import RunLayout

__all__ = ["CHROMIUM", "Served", "browsing", "serving", "training"]

CHROMIUM = shutil.which("chromium")
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
_START_S = 60.0
_END_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server that answers."""

    address: str
    """As it was printed, without the slash at the end; with a token, where one is needed."""
    process: subprocess.Popen[bytes]


@contextmanager
def serving(*places: Path, options: Sequence[str] = ("--port", "0")) -> Iterator[Served]:
    """`tandem dashboard` until the end of this context."""
    command = [sys.executable, "-m", "tandem", "dashboard", *map(str, places), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        yield Served(address=_read_address(process), process=process)
    finally:
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _read_address(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    said = b""
    until = time.monotonic() + _START_S
    while time.monotonic() < until:
        if select.select([process.stdout], [], [], 0.1)[0]:
            line = process.stdout.readline()
            said += line
            if found := re.search(rb"http://\S+", line):
                return found[0].decode().rstrip("/.")
            if not line:
                break
    raise RuntimeError(f"the dashboard did not start: {said.decode(errors='replace')}")


@contextmanager
def browsing() -> Iterator[Browser]:
    """Chromium without a window."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def training(run: Path, *, recipe: Path, workers: int) -> Iterator[Path]:
    """A run that trains until the end of this context, a thread a worker, without evaluations and checkpoints."""
    never = 10**9
    words = [f"train.max_steps={never}", f"evaluate.every_steps={never}", f"checkpoint.every_steps={never}"]
    command = [sys.executable, "-m", "tandem", "train", str(recipe), *words, "--run", str(run)]
    run.parent.mkdir(parents=True, exist_ok=True)
    with (run.parent / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            [*command, "--workers", str(workers), "--plain"],
            stdout=output,
            stderr=output,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    try:
        _wait_for_steps(run, process)
        yield run
    finally:
        process.terminate()
        process.wait(60)


def _wait_for_steps(run: Path, process: subprocess.Popen[bytes]) -> None:
    log, until = RunLayout(run).rank_log(0), time.monotonic() + 120
    while not log.is_file() or log.read_bytes().count(b'"event":"StepFinished"') < 100:
        if process.poll() is not None or time.monotonic() > until:
            raise SystemExit(f"the run does not train: {(run.parent / 'output.txt').read_text()[-1000:]}")
        time.sleep(0.5)
