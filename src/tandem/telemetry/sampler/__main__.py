"""The sampler's process: writes what a host does into the run log until whoever started it is gone."""

import argparse
import math
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tandem.runlog.writer import RunLog, open_samples_log
from tandem.telemetry.sampler.host import Host

__all__ = ["keep_sampling", "main"]

_NICE = 10
_SHORTEST = 0.1
"""Share of a sample's time that the last one must have: counters are too coarse for less."""


def main() -> None:
    """Sample the host for a run; ends with the standard input, or with the process that started it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("host", help="name of this host")
    parser.add_argument("--every", type=float, default=1.0, help="seconds from one sample to the next")
    parser.add_argument("--gpu", action="append", default=[], help="UUID of a GPU that the run uses")
    options = parser.parse_args()
    # Signals are for the ranks, which may go on for a while: the sampler stays as long as they do.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(_NICE)
    log = open_samples_log(options.run, options.host)
    try:
        keep_sampling(
            Host(options.run, gpus=options.gpu), log, every_s=options.every, is_over=_watch_parent()
        )
    finally:
        log.close()


def keep_sampling(host: Host, log: RunLog, *, every_s: float, is_over: Callable[[float], bool]) -> None:
    """Describe the host, then sample it on a steady grid and once more at the end; a late sample delays no other.

    `is_over` waits so many seconds for the end.
    """
    log.log(host.describe())
    due_s = time.monotonic() + every_s
    over = False
    while not over:
        over = is_over(max(0.0, due_s - time.monotonic()))
        if over and due_s - time.monotonic() > (1 - _SHORTEST) * every_s:
            break
        # What failed this time, as a counter that could not be read, may work the next.
        with suppress(Exception):
            log.log(host.sample())
        missed = (time.monotonic() - due_s) / every_s
        due_s += every_s * max(1, math.ceil(missed))


def _watch_parent() -> Callable[[float], bool]:
    parent = os.getppid()

    def is_over(seconds: float) -> bool:
        readable, _, _ = select.select([sys.stdin], [], [], seconds)
        return bool(readable) or os.getppid() != parent

    return is_over


if __name__ == "__main__":
    main()
