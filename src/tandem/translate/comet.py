"""COMET: a learnt judge of translations, where the package unbabel-comet is installed."""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from tandem.errors import TandemError

__all__ = ["comet_score"]

BATCH = 16


def comet_score(
    model: str, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]
) -> float:
    """The score of a whole text; `model` is a checkpoint file, or a name that COMET knows."""
    if find_spec("comet") is None:
        raise TandemError("COMET is not installed: pip install unbabel-comet, or leave --comet out.")
    if not len(sources) == len(hypotheses) == len(references):
        raise TandemError(
            f"COMET needs as many sources ({len(sources):,}) and references ({len(references):,}) as translations "
            f"({len(hypotheses):,}): give files of the same sentences."
        )
    comet = import_module("comet")
    path = model if Path(model).is_file() else comet.download_model(model)
    rows = [
        {"src": source, "mt": hypothesis, "ref": reference}
        for source, hypothesis, reference in zip(sources, hypotheses, references, strict=True)
    ]
    judged = comet.load_from_checkpoint(path).predict(rows, batch_size=BATCH, progress_bar=False)
    return float(judged.system_score)
