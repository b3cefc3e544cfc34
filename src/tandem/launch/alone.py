"""A rank whose launcher is not ours: when it fails it says so itself, in one sentence with its host."""

import os
import re
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from tandem.errors import TandemError
from tandem.launch.worker import open_output, output_file

__all__ = ["unsupervised"]


@contextmanager
def unsupervised(output: Path, *, show: Callable[[str], str] = str) -> Iterator[None]:
    """Run the block as the rank that the environment names; an error ends the process, a traceback goes to a file.

    `show` makes text from outside fit for a terminal.
    """
    rank = int(os.environ["RANK"])
    try:
        yield
    except TandemError as error:
        _leave(rank, show(str(error)))
    except Exception as error:  # noqa: BLE001 - whatever it is, somebody must hear of it
        told = f"{type(error).__name__} ({_short(error)}): {_keep(output_file(output, rank))}."
        _leave(rank, show(told))


def _keep(file: Path) -> str:
    """Write the traceback of the error that is handled; gives where it is."""
    try:
        with open_output(file) as to:
            to.write(traceback.format_exc().encode(errors="backslashreplace"))
    except OSError as error:
        return f"what led to it could not be kept ({error.strerror or error})"
    return f"what led to it is in {file} there"


def _leave(rank: int, sentence: str) -> NoReturn:
    # Without the interpreter's tidying up, which takes for ever where a library waits for a lost rank.
    sys.stderr.write(f"error: rank {rank} on {socket.gethostname()}: {sentence}\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def _short(error: Exception) -> str:
    """What the error says first, without the place in a library that torch puts before it."""
    text = re.sub(r"^\[[^]]*\]\s*", "", str(error).strip())
    return re.split(r"\. |\n", text)[0] or "no reason given"
