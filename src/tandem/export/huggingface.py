"""A model as a folder that Hugging Face's AutoModelForSeq2SeqLM and AutoTokenizer read.

Post-norm models become MarianMTModel, pre-norm ones PegasusForConditionalGeneration: the same network but for where it
normalises. Their own position waves differ a little from ours, so the files hold ours as tables. What neither computes
(rms, gated, rotary) takes its own class along: modeling_tandem.py lies in the folder.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from tandem.artefact import JsonValue, fingerprint
from tandem.checkpoint.bundle import Bundle, open_bundle
from tandem.checkpoint.huggingface import KIND, OWN_PREFIX, VERSION
from tandem.checkpoint.layout import MODEL, RECIPE
from tandem.checkpoint.listing import read_checkpoint_manifest
from tandem.checkpoint.marian import BIAS, POSITIONS, fits, theirs
from tandem.checkpoint.tensors import write_tensors
from tandem.config import EvaluateSection, ModelSection
from tandem.data.subword.learn import Subword
from tandem.data.subword.model import SentencePieceModel
from tandem.errors import TandemError
from tandem.export.huggingface_engine import (
    OWN_CODE,
    HuggingFaceEngine,
    load_own_class,
    load_transformers,
    quiet,
)
from tandem.export.layout import exporting
from tandem.export.sample import sample_sentences
from tandem.export.tokenizer_json import read_proto, vocabulary, write_tokenizer_json
from tandem.export.verify import Verified, refuse_unlike, verify_export
from tandem.files import read_bounded
from tandem.model.positions import build_positions
from tandem.progress import SILENT, Progress
from tandem.translate.engine import Sentence
from tandem.translate.marks import build_marks
from tandem.translate.open import build_translator
from tandem.translate.penalty import LengthPenalty
from tandem.translate.wish import recipe_wish

__all__ = ["export_huggingface", "refuse_inexact", "write_huggingface"]

PLACES = 2_048
"""Rows of the position tables: pieces of the longest sentence, source or target."""
LONGEST = 1_024
"""Pieces of a source sentence above which the tokenizer warns: as many as are translated at once."""
MOST_TARGET = 512
"""Pieces after which `generate` ends a translation, where it is not told otherwise."""
SIDES = ("source.spm", "target.spm")


def export_huggingface(folder: Path, target: Path, *, progress: Progress = SILENT) -> Verified:
    """Export the model of a checkpoint, and see that it translates as before; else no folder is left."""
    load_transformers()
    bundle = open_bundle(folder)
    refuse_inexact(bundle)
    manifest, _ = read_checkpoint_manifest(folder, sizes=False)
    held: Mapping[str, Any] = manifest.facts["subword"]  # type: ignore[assignment]
    kept = [RECIPE, *held["models"]]
    # Marian's tokenizer has names of its own for two models, which need not lie there twice.
    names = {RECIPE: RECIPE, **dict(zip(held["models"], _names(held["models"]), strict=True))}
    subword: dict[str, JsonValue] = {**held, "models": _names(held["models"])}
    facts: dict[str, JsonValue] = {
        "subword": subword,
        "languages": [bundle.recipe.data.source_language, bundle.recipe.data.target_language],
    }
    mark = fingerprint({name: manifest.files[name].sha256 for name in (MODEL, *kept)})
    with exporting(target, kind=KIND, version=VERSION, fingerprint=mark, progress=progress) as build:
        for name in kept:
            (build.path / names[name]).write_bytes(read_bounded(folder / name))
        with progress.bar(f"writing {folder.name} for Hugging Face"):
            write_huggingface(bundle, build.path)
        with progress.bar("verifying"):
            verified = _verify(bundle, folder, build.path)
        refuse_unlike(verified, exact=True)
        build.facts = {**facts, "verified": asdict(verified)}
    return verified


def refuse_inexact(bundle: Bundle) -> None:
    """Refuse pieces that no tokenizer of Hugging Face makes; one sentence names the key."""
    if not isinstance(bundle.subword.source, SentencePieceModel):
        raise TandemError(
            "Hugging Face has no tokenizer with subword.kind segmented: export to CTranslate2, which takes pieces, or "
            "train with SentencePiece."
        )


def write_huggingface(bundle: Bundle, folder: Path) -> None:
    """Write configuration, weights and tokenizer into a folder that exists."""
    refuse_inexact(bundle)
    section, subword = bundle.recipe.model, bundle.subword
    vocabulary = subword.vocabulary
    _write_generation(folder, bundle.recipe.evaluate, subword)
    _write_tokenizer(folder, subword)
    if not fits(section):
        _write_own(bundle, folder)
        return
    _build_config(section, subword).save_pretrained(folder)
    tensors = theirs(bundle.weights, section)
    table = build_positions(
        section.positions, torch.arange(PLACES), width=section.width, heads=section.heads
    ).sinusoids_XD
    tensors |= {name: cast(Tensor, table).clone() for name in POSITIONS}
    tensors[BIAS] = torch.zeros(1, vocabulary)
    write_tensors(folder / MODEL, {name: tensor.float() for name, tensor in tensors.items()})


def _write_own(bundle: Bundle, folder: Path) -> None:
    """Configuration and weights of our own class, and the file that has it."""
    own = load_own_class()
    config = own.TandemConfig(
        shape=bundle.recipe.model.model_dump(exclude={"preset"}),
        vocab_size=bundle.subword.vocabulary,
        **_marks(bundle.subword),
        architectures=[own.TandemForTranslation.__name__],
        auto_map={
            "AutoConfig": f"{OWN_CODE.stem}.{own.TandemConfig.__name__}",
            "AutoModelForSeq2SeqLM": f"{OWN_CODE.stem}.{own.TandemForTranslation.__name__}",
        },
    )
    config.save_pretrained(folder)
    (folder / OWN_CODE.name).write_bytes(read_bounded(OWN_CODE))
    weights = {f"{OWN_PREFIX}{name}": tensor.float() for name, tensor in bundle.weights.items()}
    write_tensors(folder / MODEL, weights)


def _names(models: Sequence[str]) -> list[JsonValue]:
    return list(SIDES if len(models) > 1 else models)


def _verify(bundle: Bundle, folder: Path, path: Path) -> Verified:
    sentences = sample_sentences(bundle.recipe, bundle.subword)
    _check_tokenizer(path, bundle.subword, sentences)
    wish = recipe_wish(bundle.recipe)
    return verify_export(
        build_translator(bundle, folder, device=torch.device("cpu")).engine,
        HuggingFaceEngine(path),
        sentences,
        subword=bundle.subword,
        # The only kind that `generate` has.
        wish=replace(wish, penalty=LengthPenalty(alpha=wish.penalty.alpha, kind="power")),
    )


def _check_tokenizer(path: Path, subword: Subword, sentences: Sequence[Sentence]) -> None:
    """Refuse a tokenizer that splits or joins otherwise than ours."""
    auto = load_transformers().AutoTokenizer
    with quiet():
        load_own_class()
        tokenizer: Any = auto.from_pretrained(str(path), local_files_only=True)
    for sentence in sentences:
        text = subword.source.decode(sentence.source)
        ours = [*subword.source.encode([text]).ids.tolist(), subword.source.special.eos]
        said = subword.target.encode([text]).ids.tolist()
        decoded = tokenizer.decode(said, skip_special_tokens=True)
        if tokenizer(text)["input_ids"] != ours or decoded != subword.target.decode(said):
            raise TandemError(
                f"The exported tokenizer does not split {text[:60]!r} as the subword model does, so the export was not "
                "kept: please report it with the recipe's subword section."
            )


def _marks(subword: Subword) -> dict[str, Any]:
    special = subword.target.special
    return {
        "pad_token_id": special.pad,
        "bos_token_id": special.bos,
        "eos_token_id": special.eos,
        "decoder_start_token_id": special.bos,
        "dtype": "float32",
    }


def _build_config(section: ModelSection, subword: Subword) -> Any:
    transformers = load_transformers()
    vocabulary = subword.vocabulary
    said: dict[str, Any] = {
        **_marks(subword),
        "vocab_size": vocabulary,
        "max_position_embeddings": PLACES,
        "d_model": section.width,
        "encoder_layers": section.encoder_layers,
        "decoder_layers": section.decoder_layers,
        "encoder_attention_heads": section.heads,
        "decoder_attention_heads": section.heads,
        "encoder_ffn_dim": section.feed_forward,
        "decoder_ffn_dim": section.feed_forward,
        "activation_function": section.activation,
        "dropout": section.dropout,
        "attention_dropout": section.attention_dropout,
        "activation_dropout": section.activation_dropout,
        "scale_embedding": True,
        "forced_eos_token_id": None,
    }
    if section.norm_place == "pre":
        tied = section.tied == "all"
        return transformers.PegasusConfig(
            **said, tie_word_embeddings=tied, architectures=["PegasusForConditionalGeneration"]
        )
    return transformers.MarianConfig(
        **said,
        decoder_vocab_size=vocabulary,
        share_encoder_decoder_embeddings=section.tied == "all",
        tie_word_embeddings=section.tied != "none",
        architectures=["MarianMTModel"],
    )


def _write_generation(folder: Path, evaluate: EvaluateSection, subword: Subword) -> None:
    special = subword.target.special
    marks = build_marks(subword, vocabulary=subword.vocabulary)
    # Of a beam of one it takes no word on how to compare translations.
    compared = {"length_penalty": evaluate.length_penalty, "early_stopping": False}
    generation = load_transformers().GenerationConfig(
        num_beams=evaluate.beam,
        **(compared if evaluate.beam > 1 else {}),
        max_length=MOST_TARGET,
        suppress_tokens=list(marks.banned),
        decoder_start_token_id=marks.start,
        bos_token_id=special.bos,
        eos_token_id=special.eos,
        pad_token_id=special.pad,
    )
    generation.save_pretrained(folder)


def _write_tokenizer(folder: Path, subword: Subword) -> None:
    source, target = cast(SentencePieceModel, subword.source), cast(SentencePieceModel, subword.target)
    if source.path == target.path:
        write_tokenizer_json(folder, read_proto(source.path), source.special, longest=LONGEST)
        return
    # A tokenizer.json has one vocabulary; Marian's own tokenizer can have one for each side.
    names = zip(SIDES, ("vocab.json", "target_vocab.json"), (source, target), strict=True)
    for model_name, vocabulary_name, model in names:
        (folder / model_name).write_bytes(read_bounded(model.path))
        ids = vocabulary(read_proto(model.path), model.special)
        _write_json(folder / vocabulary_name, ids)
    said = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": True, "model_max_length": LONGEST}
    _write_json(folder / "tokenizer_config.json", said)


def _write_json(path: Path, held: Mapping[str, object]) -> None:
    path.write_text(json.dumps(held, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
