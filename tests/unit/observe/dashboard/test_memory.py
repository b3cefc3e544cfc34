"""What was freed is not kept by the allocator."""

import subprocess
import sys

import pytest

from tandem.observe.dashboard import memory

PROGRAM = """
import sys, threading
from pathlib import Path
import numpy as np
from tandem.observe.dashboard.memory import give_back, share_memory

def resident():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) * 1024

def work():
    before = resident()
    np.ones(3_000_000)  # from here on, smaller arrays have no mapping of their own
    held = [np.ones(60_000) for _ in range(40)]
    between = held[::10]
    del held
    if sys.argv[1] == "given back":
        give_back()
    print(resident() - before)

share_memory()
worker = threading.Thread(target=work)
worker.start()
worker.join()
"""


def _kept_bytes(how: str) -> int:
    told = subprocess.run([sys.executable, "-c", PROGRAM, how], check=True, capture_output=True, text=True)
    return int(told.stdout)


def test_what_a_thread_freed_between_things_that_stay_is_given_back() -> None:
    assert _kept_bytes("kept") > 10_000_000
    assert _kept_bytes("given back") < 4_000_000


def test_a_system_that_has_no_such_calls_goes_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_library", lambda: None)
    memory.share_memory()
    memory.give_back()
