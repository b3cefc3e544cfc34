"""The subword stage: trains a model on a bounded sample of the clean text, or takes the one that the user brings."""

import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import sentencepiece

from tandem.artefact import Build, building, fingerprint, maybe_fresh, read_manifest, write_atomic
from tandem.config import SubwordSection
from tandem.data.corpus.cleaned import Cleaned
from tandem.data.shards.ragged import Ragged
from tandem.data.subword.model import SegmentedModel, SentencePieceModel, SubwordModel, padded
from tandem.errors import TandemError
from tandem.progress import SILENT, Progress

__all__ = ["Subword", "learn_subword", "open_subword"]

KIND = "subword model"
VERSION = 1
CHECKED_SENTENCES = 2_000
"""Sentences on which word-by-word encoding must equal the whole-sentence one before it is used."""

SPECIAL_TOKENS = ("<unk>", "<s>", "</s>", "<pad>")
SIDES = ("source", "target")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subword:
    """The models of both sides; a joint model is one and the same object."""

    source: SubwordModel
    target: SubwordModel

    @property
    def fingerprint(self) -> str:
        """Of the models themselves: the same text may give another model under another SentencePiece."""
        return fingerprint([self.source.fingerprint, self.target.fingerprint])

    @property
    def vocabulary(self) -> int:
        """Ids of the larger side, padded to a multiple of 8."""
        return padded(max(self.source.pieces, self.target.pieces))


def open_subword(folder: Path) -> Subword:
    """Open a finished subword stage."""
    manifest = read_manifest(folder, kind=KIND, version=VERSION)
    facts: Mapping[str, Any] = manifest.facts
    models = [_open_model(folder / name, by_word=facts["by_word"]) for name in facts["models"]]
    return Subword(source=models[0], target=models[-1])


def learn_subword(
    folder: Path, cleaned: Cleaned, rules: SubwordSection, *, mark: str, progress: Progress = SILENT
) -> tuple[Subword, bool]:
    """Make the subword model in `folder`, unless it is there already; also says whether it was.

    `mark` is the fingerprint of all that it is made from.
    """
    if maybe_fresh(folder, kind=KIND, version=VERSION, fingerprint=mark) is not None:
        return open_subword(folder), True
    with building(folder, kind=KIND, version=VERSION, fingerprint=mark) as build:
        names = ["subword"] if rules.joint else list(SIDES)
        ending = ".txt" if rules.kind == "segmented" else ".model"
        with progress.bar(f"training the subword model ({rules.kind}, {rules.vocabulary:,} pieces)") as bar:
            for name in names:
                sides = SIDES if name == "subword" else (name,)
                _make_model(
                    build.path / f"{name}{ending}", rules, _Sample(cleaned, rules.sample_sentences, sides)
                )
                bar.advance(1)
        _finish(build, [f"{name}{ending}" for name in names], cleaned)
    return open_subword(folder), False


@dataclass(frozen=True, slots=True)
class _Sample:
    """Sentences spread evenly over the clean text, at most `limit`."""

    cleaned: Cleaned
    limit: int
    sides: tuple[str, ...]

    def __iter__(self) -> Iterator[str]:
        stride = max(1, -(-self.cleaned.pairs * len(self.sides) // self.limit))
        passed = 0
        for part in self.cleaned.parts:
            # Parts that hold no sampled pair are not read.
            if (first := -passed % stride) < part.pairs:
                for source, target in part.read()[first::stride]:
                    yield from (source if side == "source" else target for side in self.sides)
            passed += part.pairs


def _make_model(path: Path, rules: SubwordSection, sample: _Sample) -> None:
    if rules.model is not None:
        SentencePieceModel(rules.model)
        shutil.copyfile(rules.model, path)
    elif rules.kind == "segmented":
        _write_tokens(path, rules.vocabulary, sample)
    else:
        _train(path, rules, sample)


def _write_tokens(path: Path, vocabulary: int, sample: _Sample) -> None:
    counts = Counter(token for sentence in sample for token in sentence.split())
    for token in SPECIAL_TOKENS:
        counts.pop(token, None)
    by_frequency = sorted(counts, key=lambda token: (-counts[token], token))
    tokens = [*SPECIAL_TOKENS, *by_frequency[: vocabulary - len(SPECIAL_TOKENS)]]
    write_atomic(path, "".join(f"{token}\n" for token in tokens).encode())


def _train(path: Path, rules: SubwordSection, sample: _Sample) -> None:
    # Written to memory: a file prefix would be stored in the model and make its bytes depend on the folder.
    model = BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sample),
            model_writer=model,
            model_type=rules.kind,
            vocab_size=rules.vocabulary,
            byte_fallback=rules.byte_fallback,
            character_coverage=0.9995 if rules.byte_fallback else 1.0,
            unk_id=0,
            bos_id=1,
            eos_id=2,
            pad_id=3,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise TandemError(_explained(str(error), rules)) from error
    write_atomic(path, model.getvalue())


def _explained(error: str, rules: SubwordSection) -> str:
    if limit := re.search(r"value <= (\d+)", error):
        most = int(limit[1]) // 8 * 8
        return (
            f"The text is too small for {rules.vocabulary:,} pieces: set subword.vocabulary={most} or less."
        )
    if re.search(r"smaller than required_chars|required_chars", error):
        return f"{rules.vocabulary:,} pieces are too few for the text's characters: set a larger subword.vocabulary."
    return f"SentencePiece could not train the subword model: {error.strip()}."


def _finish(build: Build, names: list[str], cleaned: Cleaned) -> None:
    by_word = all(_encodes_by_word(build.path / name, cleaned, sides) for name, sides in _sides_of(names))
    build.facts = {"models": names, "by_word": by_word}


def _sides_of(names: list[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield from [(names[0], SIDES)] if len(names) == 1 else [(name, (Path(name).stem,)) for name in names]


def _encodes_by_word(path: Path, cleaned: Cleaned, sides: tuple[str, ...]) -> bool:
    if path.suffix == ".txt":
        return False
    whole = SentencePieceModel(path)
    if whole.has_inner_spaces():
        return False
    sentences = list(islice(_Sample(cleaned, CHECKED_SENTENCES, sides), CHECKED_SENTENCES))
    return _equal(whole.encode(sentences), SentencePieceModel(path, by_word=True).encode(sentences))


def _equal(left: Ragged, right: Ragged) -> bool:
    return left.lengths.tolist() == right.lengths.tolist() and left.ids.tobytes() == right.ids.tobytes()


def _open_model(path: Path, *, by_word: bool) -> SubwordModel:
    return SegmentedModel(path) if path.suffix == ".txt" else SentencePieceModel(path, by_word=by_word)
