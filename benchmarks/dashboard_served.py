"""A dashboard as a process of its own, and a browser to look at it."""

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

__all__ = ["CHROMIUM", "Served", "browsing", "serving"]

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
