"""A small model with its subword model, in memory and as a run folder."""

from io import BytesIO
from pathlib import Path

import sentencepiece
import torch

from tandem.artefact import building
from tandem.checkpoint.store import CheckpointStore, Scores, Snapshot
from tandem.config import ModelSection, Recipe, recipe_yaml
from tandem.data.corpus.builtin import builtin_pairs
from tandem.data.subword.learn import Subword, open_subword
from tandem.model import Transformer, build_model
from tandem.runlog.layout import RunLayout
from tandem.runlog.writer import NullLog
from tandem.translate.marks import build_marks
from tandem.translate.torch_engine import TorchEngine
from tandem.translate.translator import Mend, Translator
from tandem.translate.wish import Wish

SECTION = ModelSection(preset="tiny", width=16, heads=2, feed_forward=32)
SENTENCES = [source for source, _ in builtin_pairs(seed=3, split="train", count=300)]


def write_subword(folder: Path) -> Subword:
    """A joint SentencePiece model, as preparing data leaves it."""
    model = BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES),
        model_writer=model,
        vocab_size=403,  # not a multiple of 8: the embedding has rows that mean nothing
        model_type="bpe",
        byte_fallback=True,
        unk_id=0,
        bos_id=1,
        eos_id=2,
        pad_id=3,
        minloglevel=2,
    )
    with building(folder, kind="subword model", version=1, fingerprint="") as build:
        (build.path / "subword.model").write_bytes(model.getvalue())
        build.facts = {"models": ["subword.model"], "by_word": False}
    return open_subword(folder)


def build_small(subword: Subword, *, seed: int = 1) -> Transformer:
    """A model that has learned nothing, but has clear opinions: rounding does not change its choices."""
    size = subword.vocabulary
    model = build_model(SECTION, source_vocabulary=size, target_vocabulary=size, pad=3, seed=seed)
    model.target_embedding.data *= 3
    return model.eval()


def build_engine(model: Transformer, subword: Subword, *, batch_tokens: int | None = None) -> TorchEngine:
    """Our own engine on a CPU."""
    marks = build_marks(subword, vocabulary=len(model.output_weight))
    return TorchEngine(model, marks=marks, device=torch.device("cpu"), batch_tokens=batch_tokens)


def build_translator(
    model: Transformer,
    subword: Subword,
    *,
    wish: Wish | None = None,
    batch_tokens: int | None = None,
    mend: Mend = str,
    most_pieces: int = 256,
    sentences: bool = True,
) -> Translator:
    """A translator on a CPU."""
    engine = build_engine(model, subword, batch_tokens=batch_tokens)
    return Translator(engine, subword, wish=wish, mend=mend, most_pieces=most_pieces, sentences=sentences)


def write_run(folder: Path, subword_folder: Path, *, bleu: dict[int, float]) -> None:
    """A run with a checkpoint for each step that has a BLEU; its weights are drawn with the step as seed."""
    corpus = {"train": [{"builtin": {"pairs": 10}}]}
    recipe = Recipe.model_validate(
        {"name": "small", "data": corpus, "model": SECTION.model_dump(), "evaluate": {"beam": 2}}
    )
    store = CheckpointStore(
        RunLayout(folder).checkpoints,
        recipe_text=recipe_yaml(recipe),
        subword_folder=subword_folder,
        keep_last=9,
        keep_best=9,
        log=NullLog(),
    )
    subword = open_subword(subword_folder)
    for step, score in bleu.items():
        weights = build_small(subword, seed=step).state_dict()
        scores = Scores(loss=None, bleu=score)
        store.save(Snapshot(step=step, model=weights, optimizer={}, state={}, scores=scores))
        store.wait()
    store.close()
