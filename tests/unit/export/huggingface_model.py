"""Small checkpoints of every shape that Hugging Face knows, with opinions on when to end."""

from io import BytesIO
from pathlib import Path
from typing import Any

import sentencepiece
import torch

from tandem.artefact import JsonValue
from tandem.checkpoint.layout import MODEL, RECIPE
from tandem.checkpoint.listing import Scores
from tandem.checkpoint.write import Draft, write_checkpoint
from tandem.config import ModelSection, Recipe, recipe_yaml
from tandem.data.corpus.builtin import builtin_pairs
from tandem.model import Transformer, build_model

PAIRS = list(builtin_pairs(seed=3, split="train", count=300))
SENTENCES = [source for source, _ in PAIRS[:12]]
SMALL = {"preset": "tiny", "width": 16, "heads": 2, "feed_forward": 32, "dropout": 0.0}


def spm(side: int, *, kind: str = "bpe", pieces: int = 403) -> bytes:
    """A SentencePiece model of one language, or with side 2 of both."""
    lines = [line for pair in PAIRS for line in (pair if side == 2 else pair[side : side + 1])]
    model = BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=pieces,  # not a multiple of 8: the embedding has rows that mean nothing
        model_type=kind,
        byte_fallback=True,
        unk_id=0,
        bos_id=1,
        eos_id=2,
        pad_id=3,
        minloglevel=2,
    )
    return model.getvalue()


def build_ending(section: ModelSection, vocabulary: int, *, ending: float, seed: int = 1) -> Transformer:
    """A model that has learned nothing, but ends sometimes, and where norms do more than divide."""
    model = build_model(section, source_vocabulary=vocabulary, target_vocabulary=vocabulary, pad=3, seed=seed)
    last = model.decoder_norm if section.norm_place == "pre" else model.decoder[-1].around_feed_forward.norm
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.2)
        if isinstance(last, torch.nn.LayerNorm):
            last.bias.add_(torch.tensor([1.0, -1.0] * (section.width // 2)))
            model.output_weight[2] += ending * last.bias
    return model.eval()


def write_model(folder: Path, models: list[bytes], *, ending: float = 0.1, **shape: Any) -> Path:
    """A checkpoint with one subword model or two; the higher `ending`, the sooner translations end."""
    recipe = Recipe.model_validate(
        {
            "name": "small",
            "data": {"train": [{"builtin": {"pairs": 10}}]},
            "subword": {"joint": len(models) == 1},
            "model": {**SMALL, **shape},
            "evaluate": {"beam": 3},
        }
    )
    names = ["subword.model"] if len(models) == 1 else ["source.model", "target.model"]
    weights = build_ending(recipe.model, 408, ending=ending).state_dict()
    texts = {RECIPE: recipe_yaml(recipe).encode(), **dict(zip(names, models, strict=True))}
    facts: dict[str, JsonValue] = {
        "step": 1,
        "scores": Scores().to_json(),
        "subword": {"models": [*names], "by_word": False},
    }
    write_checkpoint(folder, Draft(tensors={MODEL: weights}, texts=texts, facts=facts))
    return folder
