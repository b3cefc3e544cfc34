"""Makes the ranks that Python starts with this folder on its path slow in what $WEAK, a JSON file, says at the moment.

`batch_s`: seconds more for a batch, as of a disk far away; `every`: for one batch of so many; `flush_s`: seconds more
until a file is surely on the disk; `ranks`: those that it is so for. What was lost stands beside the file, by rank.
"""

import importlib
import json
import os
import time
from pathlib import Path
from typing import Any

__all__: list[str] = []


def _lose(key: str, *, number: int = 0) -> None:
    file, rank = Path(os.environ["WEAK"]), int(os.environ["RANK"])
    try:
        weak: dict[str, Any] = json.loads(file.read_text())
    except (OSError, ValueError):
        return
    seconds = float(weak.get(key, 0.0))
    if seconds and rank in weak.get("ranks", [rank]) and number % int(weak.get("every", 1)) == 0:
        time.sleep(seconds)
        with file.with_name(f"{file.stem}-{key}-{rank}.txt").open("a") as lost:
            lost.write(f"{seconds}\n")


if "RANK" in os.environ and "TRACEML_SESSION_ID" in os.environ:
    importlib.import_module("traceml_marks").install()

if "RANK" in os.environ and "WEAK" in os.environ:
    from tandem.data.batches.stream import BatchStream

    _build, _flush = BatchStream._build, os.fsync  # noqa: SLF001
    _built = [0]

    def _build_slowly(stream, cursor, step):  # type: ignore[no-untyped-def]
        _built[0] += 1
        _lose("batch_s", number=_built[0])
        return _build(stream, cursor, step)

    def _flush_slowly(file):  # type: ignore[no-untyped-def]
        _lose("flush_s")
        _flush(file)

    BatchStream._build = _build_slowly  # type: ignore[method-assign]  # noqa: SLF001
    os.fsync = _flush_slowly
