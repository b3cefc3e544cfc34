"""Slows down the reader of every rank that Python starts with this folder on its path: a disk far away, as it were."""

import os
import time

__all__: list[str] = []

if "RANK" in os.environ:
    from tandem.data.batches.stream import BatchStream

    _build = BatchStream._build  # noqa: SLF001
    _batch_s = float(os.environ["SLOW_READER_S"])

    def _build_slowly(stream, cursor):  # type: ignore[no-untyped-def]
        time.sleep(_batch_s)
        return _build(stream, cursor)

    BatchStream._build = _build_slowly  # type: ignore[method-assign]  # noqa: SLF001
