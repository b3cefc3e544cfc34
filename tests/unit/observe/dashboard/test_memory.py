"""What was freed is not kept by the allocator."""

import subprocess
import sys

PROGRAM = """
import sys, threading
from pathlib import Path
import numpy as np
from tandem.observe.dashboard.memory import keep_little

if sys.argv[1] == "little":
    keep_little()

def pass_through():
    np.ones(3_000_000)
    held = [np.ones(60_000) for _ in range(40)]

def resident():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) * 1024

def work():
    before = resident()
    pass_through()
    print(resident() - before)

worker = threading.Thread(target=work)
worker.start()
worker.join()
"""


def _kept_bytes(how: str) -> int:
    told = subprocess.run([sys.executable, "-c", PROGRAM, how], check=True, capture_output=True, text=True)
    return int(told.stdout)


def test_arrays_that_passed_through_a_thread_are_given_back() -> None:
    assert _kept_bytes("as it comes") > 10_000_000
    assert _kept_bytes("little") < 3_000_000
