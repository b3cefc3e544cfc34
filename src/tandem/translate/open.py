"""A translator from a folder: the bundle inside a checkpoint holds all that it needs."""

from pathlib import Path

import torch

from tandem.checkpoint.bundle import Bundle, open_bundle
from tandem.config import Recipe
from tandem.data.corpus.filters import build_menders
from tandem.errors import TandemError
from tandem.model import Transformer
from tandem.translate.translator import Mend, Translator

__all__ = ["build_mend", "open_translator"]


def open_translator(folder: Path, device: torch.device, *, beam: int | None = None) -> Translator:
    """The translator of a checkpoint; searches as its evaluations did, but for what is said here."""
    bundle = open_bundle(folder)
    evaluate = bundle.recipe.evaluate
    return Translator(
        _build(bundle, folder).to(device),
        bundle.subword,
        device=device,
        beam=evaluate.beam if beam is None else beam,
        length_penalty=evaluate.length_penalty,
        mend=build_mend(bundle.recipe),
    )


def build_mend(recipe: Recipe) -> Mend:
    """What was done to the text that the model learned from, and must be done to the text that it translates."""
    menders = [
        mender for _, mender in build_menders(recipe.clean, segmented=recipe.subword.kind == "segmented")
    ]

    def mend(line: str) -> str:
        for mender in menders:
            line = mender(line)
        return " ".join(line.split())

    return mend


def _build(bundle: Bundle, folder: Path) -> Transformer:
    vocabulary = bundle.subword.vocabulary
    with torch.device("meta"):  # the weights are at hand: none need be drawn
        model = Transformer(
            bundle.recipe.model,
            source_vocabulary=vocabulary,
            target_vocabulary=vocabulary,
            pad=bundle.subword.target.special.pad,
        )
    try:
        model.load_state_dict(dict(bundle.weights), assign=True)
    except RuntimeError as error:
        raise TandemError(
            f"The weights in {folder} do not fit the recipe beside them: copy the checkpoint again as it was written."
        ) from error
    return model.eval()
