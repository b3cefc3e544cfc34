"""Conversions that nobody asked for by name: kept in the user's cache, so that a checkpoint is converted once."""

import time
from pathlib import Path

from tandem.artefact import maybe_fresh, verify
from tandem.checkpoint.bundle import check_bundle
from tandem.errors import TandemError
from tandem.export.ctranslate2 import Quantization, export_ctranslate2, export_fingerprint
from tandem.files import remove_tree
from tandem.lock import BusyError, locked
from tandem.progress import SILENT, Progress
from tandem.translate.exported import KIND, VERSION

__all__ = ["cached_conversion"]

EXACT: Quantization = "float32"
"""Nobody asked for a conversion, so it must not change what is said."""

BUSY_S = 0.2
"""Pause before looking again whether another process has finished the same conversion."""


def cached_conversion(folder: Path, *, cache: Path, progress: Progress = SILENT) -> Path:
    """The model of a checkpoint for a CPU, with all of its digits.

    It is converted and verified the first time, which is said in one line; what was damaged since is made again. A
    checkpoint that is damaged itself is refused, whatever was made of it before.
    """
    mark = export_fingerprint(folder, EXACT)
    target = cache / "ctranslate2" / mark[:32]
    while not _is_whole(target, mark):
        try:
            _discard_damaged(target, mark)
            verified = export_ctranslate2(folder, target, quantization=EXACT, progress=progress)
        except BusyError:
            time.sleep(BUSY_S)
        else:
            progress.say(f"Converted {folder.name} for CTranslate2, kept in {target.parent}: {verified}.")
            return target
    check_bundle(folder)
    return target


def _is_whole(target: Path, mark: str) -> bool:
    manifest = maybe_fresh(target, kind=KIND, version=VERSION, fingerprint=mark)
    if manifest is None:
        return False
    try:
        verify(target, manifest)
    except (OSError, TandemError):
        return False
    return True


def _discard_damaged(target: Path, mark: str) -> None:
    if not target.exists():
        return
    with locked(target.resolve()):
        # Another process may have made it again meanwhile.
        if not _is_whole(target, mark):
            remove_tree(target)
