"""Hugging Face's own search on an exported folder, as an engine: what an export is checked with."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from tandem.errors import TandemError
from tandem.translate.engine import Found, Sentence
from tandem.translate.wish import Wish

__all__ = ["OWN_CODE", "HuggingFaceEngine", "load_own_class", "load_transformers", "quiet"]

OWN_CODE = Path(__file__).with_name("modeling_tandem.py")
"""What computes models that no class of transformers does; it is copied into their folders."""

SENTENCES = 16


def load_transformers() -> Any:
    """The library, which is an extra."""
    try:
        for name in ("tokenizers", "google.protobuf"):
            import_module(name)
        return import_module("transformers")
    except ImportError:
        raise TandemError(
            "Hugging Face's libraries are not installed: pip install 'tandem-nmt[huggingface]'."
        ) from None


def load_own_class() -> Any:
    """Our own class, which transformers takes from now on for its models: no code of a folder is run."""
    transformers = load_transformers()
    own = import_module(f"tandem.export.{OWN_CODE.stem}")
    transformers.AutoConfig.register(own.TandemConfig.model_type, own.TandemConfig, exist_ok=True)
    transformers.AutoModelForSeq2SeqLM.register(own.TandemConfig, own.TandemForTranslation, exist_ok=True)
    return own


class HuggingFaceEngine:
    """Searches with `generate`; its length penalty is a power of the length."""

    name = "huggingface"

    def __init__(self, folder: Path) -> None:
        transformers = load_transformers()
        load_own_class()
        with quiet():
            self._model: Any = transformers.AutoModelForSeq2SeqLM.from_pretrained(
                str(folder), local_files_only=True
            )
        self._model.eval()

    def search(self, sentences: Sequence[Sentence], wish: Wish) -> list[list[Found]]:
        """Translations of each sentence, best first; without prefixes, token scores, alignments and samples."""
        found: list[list[Found]] = []
        for start in range(0, len(sentences), SENTENCES):
            found += self._search_batch(sentences[start : start + SENTENCES], wish)
        return found

    def _search_batch(self, sentences: Sequence[Sentence], wish: Wish) -> list[list[Found]]:
        config = self._model.config
        rows = [torch.tensor([*sentence.source, config.eos_token_id]) for sentence in sentences]
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=config.pad_token_id)
        lengths = torch.tensor([len(row) for row in rows])
        with torch.inference_mode(), quiet():
            made = self._model.generate(
                input_ids=ids,
                attention_mask=(torch.arange(ids.shape[1]) < lengths[:, None]).long(),
                num_beams=wish.beam,
                num_return_sequences=wish.best,
                length_penalty=wish.penalty.alpha,
                # Ours stops when nothing better can come: theirs does so under this name.
                early_stopping="never",
                max_length=None,
                max_new_tokens=max(sentence.most for sentence in sentences) + 1,
                logits_processor=[_Limits(sentences, beam=wish.beam, end=config.eos_token_id)],
                return_dict_in_generate=True,
                output_scores=True,
                output_logits=True,
            )
        every = [
            Found(ids=self._said(row), score=score)
            for row, score in zip(made.sequences.tolist(), self._scores(made, wish), strict=True)
        ]
        return [every[first : first + wish.best] for first in range(0, len(every), wish.best)]

    def _scores(self, made: Any, wish: Wish) -> list[float]:
        if made.get("sequences_scores") is not None:
            return [float(score) for score in made.sequences_scores]
        # Greedy search tells the scores of the pieces alone.
        pieces = self._model.compute_transition_scores(made.sequences, made.logits, normalize_logits=True)
        real = made.sequences[:, 1:] != self._model.config.pad_token_id
        sums = pieces.where(real, 0.0).sum(1)
        lengths = real.sum(1).tolist()
        return [float(total) / wish.penalty.at(length) for total, length in zip(sums, lengths, strict=True)]

    def _said(self, row: list[int]) -> tuple[int, ...]:
        marks = {self._model.config.pad_token_id, self._model.config.eos_token_id}
        return tuple(piece for piece in row[1:] if piece not in marks)


class _Limits:
    """Ends translations where ours end: their own way forgets what the end mark costs."""

    def __init__(self, sentences: Sequence[Sentence], *, beam: int, end: int) -> None:
        self._limits = torch.tensor([sentence.most for sentence in sentences]).repeat_interleave(beam)
        self._end = end

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        full = self._limits < input_ids.shape[1]
        ends = scores[:, self._end].clone()
        scores = scores.masked_fill(full[:, None], float("-inf"))
        scores[:, self._end] = ends
        return scores


@contextmanager
def quiet() -> Iterator[None]:
    """Without bars and advice of the library, which would stand between ours."""
    logging: Any = import_module("transformers.utils.logging")
    bars, before = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Recommended: pip install sacremoses")
            yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()
