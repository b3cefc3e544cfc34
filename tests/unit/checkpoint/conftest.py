"""Subword models and stores for a small run."""

from io import BytesIO
from pathlib import Path

import pytest
import sentencepiece
from tests.unit.checkpoint.small_run import RECIPE, BuildStore, KeptLog, make_subword

from tandem.checkpoint.store import CheckpointStore
from tandem.data.corpus.builtin import builtin_pairs


@pytest.fixture(scope="session")
def piece_model() -> bytes:
    """A SentencePiece model of a few kilobytes."""
    model = BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([source for source, _ in builtin_pairs(seed=3, split="train", count=300)]),
        model_writer=model,
        vocab_size=120,
        normalization_rule_name="identity",
        pad_id=3,
        minloglevel=2,
    )
    return model.getvalue()


@pytest.fixture(scope="session")
def subword_folder(tmp_path_factory: pytest.TempPathFactory, piece_model: bytes) -> Path:
    return make_subword(tmp_path_factory.mktemp("data") / "subword", {"subword.model": piece_model})


@pytest.fixture
def log() -> KeptLog:
    return KeptLog()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run" / "checkpoints"


@pytest.fixture
def build_store(folder: Path, subword_folder: Path, log: KeptLog) -> BuildStore:
    def build(*, keep_last: int = 3, keep_best: int = 3, subword: Path = subword_folder) -> CheckpointStore:
        return CheckpointStore(
            folder,
            recipe_text=RECIPE,
            subword_folder=subword,
            keep_last=keep_last,
            keep_best=keep_best,
            log=log,
        )

    return build
