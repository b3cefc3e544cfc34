"""Conversions that nobody asked for by name: kept in the user's cache, so that a checkpoint is converted once."""

import time
from pathlib import Path

from tandem.artefact import maybe_fresh
from tandem.export.ctranslate2 import Quantization, export_ctranslate2, export_fingerprint
from tandem.export.verify import UnlikeError
from tandem.lock import BusyError
from tandem.progress import SILENT, Progress
from tandem.translate.exported import KIND, VERSION

__all__ = ["cached_conversion"]

ORDER: tuple[Quantization, Quantization] = ("int8", "float32")
"""What is tried, and what is looked for, one after the other."""

BUSY_S = 0.2
"""Pause before looking again whether another process has finished the same conversion."""


def cached_conversion(folder: Path, *, cache: Path, progress: Progress = SILENT) -> Path:
    """The model of a checkpoint for a CPU: its weights as 8-bit numbers, or where that changes too much, as they are.

    It is converted and verified the first time, which is said in one line.
    """
    for quantization in ORDER:
        if _is_fresh(folder, cache, quantization):
            return _place(folder, cache, quantization)
    first, last = ORDER
    try:
        return _convert(folder, cache, first, progress)
    except UnlikeError:
        return _convert(folder, cache, last, progress)


def _place(folder: Path, cache: Path, quantization: Quantization) -> Path:
    return cache / "ctranslate2" / export_fingerprint(folder, quantization)[:32]


def _is_fresh(folder: Path, cache: Path, quantization: Quantization) -> bool:
    target, mark = _place(folder, cache, quantization), export_fingerprint(folder, quantization)
    return maybe_fresh(target, kind=KIND, version=VERSION, fingerprint=mark) is not None


def _convert(folder: Path, cache: Path, quantization: Quantization, progress: Progress) -> Path:
    target = _place(folder, cache, quantization)
    while not _is_fresh(folder, cache, quantization):
        try:
            verified = export_ctranslate2(folder, target, quantization=quantization, progress=progress)
        except BusyError:
            time.sleep(BUSY_S)
        else:
            progress.say(
                f"Converted {folder.name} to {quantization} for CTranslate2, kept in {target.parent}: {verified}."
            )
            return target
    return target
