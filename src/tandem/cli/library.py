"""Models of every kind opened for people and for programs: what `from tandem import load_translator` gives."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tandem.errors import TandemError
from tandem.progress import SILENT, Progress

if TYPE_CHECKING:
    from tandem.translate.open import EngineName, Precision
    from tandem.translate.translator import Translator

__all__ = ["cache_folder", "load_translator", "state_folder"]


def load_translator(
    path: str | os.PathLike[str],
    *,
    engine: "EngineName" = "auto",
    device: str = "auto",
    precision: "Precision" = "float32",
    threads: int | None = None,
    batch_tokens: int | None = None,
    sentences: bool = True,
    progress: Progress = SILENT,
) -> "Translator":
    """The translator of a run, a checkpoint, a bundle or a folder that `tandem export` wrote.

    `engine` is torch, ctranslate2, or auto: CTranslate2 on a CPU where it is installed, for which a checkpoint is
    converted once and kept in the user's cache. `device` is cpu, cuda, or auto: a GPU where there is one. Each sentence
    of a line is translated for itself; without `sentences` a line is translated as it is, unless it is too long.
    """
    from tandem.translate.open import open_model

    refused: list[Exception] = []

    def convert(folder: Path) -> Path | None:
        from tandem.export.cached import cached_conversion

        try:
            return cached_conversion(folder, cache=cache_folder(), progress=progress)
        except (OSError, TandemError) as error:
            if engine == "ctranslate2":
                raise
            refused.append(error)
            return None

    translator = open_model(
        Path(path),
        engine=engine,
        device=device,
        precision=precision,
        threads=threads,
        batch_tokens=batch_tokens,
        sentences=sentences,
        convert=convert,
    )
    # Said now: a model that torch cannot open either has but one thing wrong with it.
    for error in refused:
        progress.say(f"CTranslate2 cannot be used, and the model is searched with torch instead: {error}")
    return translator


def cache_folder() -> Path:
    """Where what can be made again is kept for this user."""
    return _of_user("XDG_CACHE_HOME", ".cache")


def state_folder() -> Path:
    """Where what was done is kept for this user."""
    return _of_user("XDG_STATE_HOME", ".local/state")


def _of_user(variable: str, below_home: str) -> Path:
    named = os.environ.get(variable, "")
    # As the XDG specification has it: a relative path there counts as none.
    base = Path(named) if Path(named).is_absolute() else Path.home() / below_home
    return base / "tandem"
