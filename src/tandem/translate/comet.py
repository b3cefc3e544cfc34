"""COMET: a learnt judge of translations, where the package unbabel-comet is installed."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pickle import UnpicklingError

from tandem.errors import TandemError

__all__ = ["comet_score"]

BATCH = 16


def comet_score(
    model: str,
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    is_trusted: bool = False,
) -> float:
    """The score of a whole text; `model` is a checkpoint file, or a name that COMET knows.

    A checkpoint of COMET's is a pickle, which can run any code when it is read. Unless it `is_trusted`, nothing but
    numbers is read from it; TandemError where it holds more.
    """
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
    with nullcontext() if is_trusted else _numbers_alone(model):
        judge = comet.load_from_checkpoint(path)
    judged = judge.predict(rows, batch_size=BATCH, progress_bar=False)
    return float(judged.system_score)


@contextmanager
def _numbers_alone(model: str) -> Iterator[None]:
    """Have torch read only tensors and plain values, whatever COMET and Lightning ask it for."""
    # They have no option that reaches torch.load, which heeds this above what it is given.
    with _environment(TORCH_FORCE_WEIGHTS_ONLY_LOAD="1", TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD="0"):
        try:
            yield
        except UnpicklingError:
            raise TandemError(
                f"The COMET model {model} holds more than numbers, which could run any code: if you trust who made it, "
                "add --trust-comet."
            ) from None


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
