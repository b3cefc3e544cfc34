"""A translator from a folder: a run, a checkpoint, a bundle, or what `tandem export` wrote."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import torch

from tandem.artefact import parse_manifest, read_raw_manifest
from tandem.checkpoint.bundle import Bundle, find_bundle, open_bundle
from tandem.checkpoint.huggingface import is_huggingface, open_huggingface
from tandem.config import Recipe
from tandem.data.corpus.filters import build_menders
from tandem.data.subword.learn import Subword
from tandem.errors import TandemError
from tandem.model import Transformer
from tandem.translate.ctranslate2_engine import has_ctranslate2
from tandem.translate.engine import Engine
from tandem.translate.exported import KIND, open_ctranslate2
from tandem.translate.marks import build_marks
from tandem.translate.torch_engine import TorchEngine
from tandem.translate.translator import Mend, Translator
from tandem.translate.wish import recipe_wish

__all__ = [
    "Convert",
    "EngineName",
    "Precision",
    "build_mend",
    "build_translator",
    "find_device",
    "open_model",
    "wrap_engine",
]

EngineName: TypeAlias = Literal["auto", "torch", "ctranslate2"]
Precision: TypeAlias = Literal["float32", "bfloat16"]

Convert: TypeAlias = Callable[[Path], Path | None]
"""Takes the folder of a checkpoint to one with the same model for CTranslate2; None: it cannot be used there."""

MOST_PIECES = 1_024
"""No line of more is translated as it is, whatever the recipe says: attention grows with the square."""


def open_model(
    path: Path,
    *,
    engine: EngineName = "auto",
    device: str = "auto",
    precision: Precision = "float32",
    threads: int | None = None,
    batch_tokens: int | None = None,
    sentences: bool = True,
    convert: Convert | None = None,
) -> Translator:
    """The translator of a run, a checkpoint, a bundle or an exported folder; it searches as evaluations did.

    Each sentence of a line is translated for itself; without `sentences` only lines that are too long are split, as
    evaluations do, whose scores are of whole lines.

    `auto` takes CTranslate2 for a folder that was exported to it; for a checkpoint where no GPU is used, CTranslate2 is
    installed and `convert` is given; and our own engine otherwise.
    """
    found = find_device(device)
    exported = partial(
        _open_exported, device=found, threads=threads, batch_tokens=batch_tokens, sentences=sentences
    )
    if _is_ctranslate2(path):
        if engine == "torch":
            raise TandemError(
                f"{path} is in CTranslate2's format, which the engine torch cannot read: name the checkpoint that it "
                "was exported from."
            )
        return exported(path)
    is_foreign = is_huggingface(path)
    if is_foreign and engine == "ctranslate2":
        raise TandemError(
            f"{path} is in Hugging Face's format, which the engine ctranslate2 cannot read: make a bundle of it with "
            "tandem import huggingface first, and name that."
        )
    folder = path if is_foreign else find_bundle(path)
    if not is_foreign and convert is not None and _wants_conversion(engine, found, precision):
        converted = convert(folder)
        if converted is not None:
            return exported(converted)
    if engine == "ctranslate2":
        raise TandemError(f"{path} is not in CTranslate2's format: export it with tandem export first.")
    if threads is not None:
        torch.set_num_threads(threads)
    bundle = open_huggingface(path) if is_foreign else open_bundle(folder)
    return build_translator(
        bundle,
        folder,
        device=found,
        precision=precision,
        batch_tokens=batch_tokens,
        sentences=sentences,
    )


def build_translator(
    bundle: Bundle,
    folder: Path,
    *,
    device: torch.device,
    precision: Precision = "float32",
    batch_tokens: int | None = None,
    sentences: bool = True,
) -> Translator:
    """The translator of an open bundle with our own engine; `folder` is for what an error says."""
    model = _build(bundle, folder).to(device=device, dtype=getattr(torch, precision))
    marks = build_marks(bundle.subword, vocabulary=len(model.output_weight))
    engine = TorchEngine(model, marks=marks, device=device, batch_tokens=batch_tokens)
    return wrap_engine(engine, bundle.subword, bundle.recipe, sentences=sentences)


def wrap_engine(engine: Engine, subword: Subword, recipe: Recipe, *, sentences: bool = True) -> Translator:
    """A translator that reads, mends and searches as the recipe says, with any engine."""
    return Translator(
        engine,
        subword,
        wish=recipe_wish(recipe),
        mend=build_mend(recipe),
        most_pieces=min(recipe.subword.max_pieces, MOST_PIECES),
        languages=(recipe.data.source_language, recipe.data.target_language),
        sentences=sentences,
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


def find_device(name: str) -> torch.device:
    """The device of that name; `auto` is a GPU where there is one."""
    if name not in {"auto", "cpu", "cuda"}:
        raise TandemError(f"There is no device {name!r}: use cpu, cuda or auto.")
    has_gpu = torch.cuda.is_available()
    if name == "cuda" and not has_gpu:
        raise TandemError("This machine has no GPU that PyTorch can use: take --device cpu.")
    return torch.device("cuda" if has_gpu and name != "cpu" else "cpu")


def _is_ctranslate2(path: Path) -> bool:
    try:
        return parse_manifest(read_raw_manifest(path), folder=path).kind == KIND
    except (OSError, TandemError):  # what is wrong with it, the one who opens it says
        return False


def _open_exported(
    folder: Path, *, device: torch.device, threads: int | None, batch_tokens: int | None, sentences: bool
) -> Translator:
    exported = open_ctranslate2(folder, device=device.type, threads=threads, batch_tokens=batch_tokens)
    return wrap_engine(exported.engine, exported.subword, exported.recipe, sentences=sentences)


def _wants_conversion(engine: EngineName, device: torch.device, precision: Precision) -> bool:
    if engine == "auto":
        return device.type == "cpu" and precision == "float32" and has_ctranslate2()
    return engine == "ctranslate2"


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
