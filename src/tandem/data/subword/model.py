"""A subword model: sentences to pieces and back. Two kinds: SentencePiece, and text that is segmented already."""

from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import sentencepiece

from tandem.artefact import sha256_file
from tandem.data.shards.part import id_type
from tandem.data.shards.ragged import Ragged
from tandem.data.shards.special import SpecialIds
from tandem.data.subword.words import WordIds
from tandem.errors import TandemError
from tandem.files import read_bounded, require_regular

__all__ = ["SegmentedModel", "SentencePieceModel", "SubwordModel", "join_pieces", "padded"]

CONTINUES = "@@"
"""Ends a piece that goes on in the next one, in text segmented by subword-nmt."""


class SubwordModel(Protocol):
    """Sentences to ids and back."""

    pieces: int
    """Ids in use: pieces and special ids."""
    special: SpecialIds
    fingerprint: str

    def encode(self, sentences: Sequence[str]) -> Ragged:
        """Ids of each sentence, without begin and end marks."""

    def decode(self, ids: Sequence[int]) -> str:
        """The sentence of these ids; special ids are left out."""

    def spell(self, ids: Sequence[int]) -> list[str]:
        """The pieces as text, to be shown."""

    def count_words(self, sentence: str) -> int:
        """Words of a mended sentence: single spaces part them."""


def padded(pieces: int) -> int:
    """Rows of the embedding: the next multiple of 8, which matrix units multiply faster."""
    return -(-pieces // 8) * 8


def _joined(rows: Iterable[bytes], dtype: np.dtype[np.unsignedinteger]) -> Ragged:
    rows = list(rows)
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows)) // dtype.itemsize
    return Ragged(ids=np.frombuffer(b"".join(rows), dtype=dtype), lengths=lengths)


class SentencePieceModel:
    """A SentencePiece model. Words are encoded once and remembered where that gives the same ids (`by_word`)."""

    def __init__(self, path: Path, *, by_word: bool = False) -> None:
        try:
            require_regular(path, links=True)
            self._processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        except (OSError, RuntimeError) as error:
            raise TandemError(
                f"{path} is not a SentencePiece model: name a .model file that spm_train wrote."
            ) from error
        size = self._processor.vocab_size()
        self.special = _special_ids(self._processor, size)
        self.pieces = max(size, max(self.special.bos, self.special.eos, self.special.pad) + 1)
        self.fingerprint = sha256_file(path, links=True)
        self.path = path
        self._spoken = size
        self._type = id_type(padded(self.pieces))
        self._code = self._type.char
        self._words = WordIds(self._encode_whole) if by_word else None

    def encode(self, sentences: Sequence[str]) -> Ragged:
        """Ids of each sentence."""
        encode = self._encode_whole if self._words is None else self._words.sentence
        return _joined(map(encode, sentences), self._type)

    def decode(self, ids: Sequence[int]) -> str:
        """The sentence of these ids."""
        return str(self._processor.decode(self._text_ids(ids)))

    def spell(self, ids: Sequence[int]) -> list[str]:
        """The pieces as text."""
        return [str(self._processor.id_to_piece(piece)) for piece in self._text_ids(ids)]

    def count_words(self, sentence: str) -> int:
        """Words of a sentence."""
        return sentence.count(" ") + 1 if sentence else 0

    def has_inner_spaces(self) -> bool:
        """Whether a piece may reach over the end of a word."""
        return any("▁" in self._processor.id_to_piece(piece)[1:] for piece in range(self._spoken))

    def _text_ids(self, ids: Sequence[int]) -> list[int]:
        marks = {self.special.bos, self.special.eos, self.special.pad}
        return [int(piece) for piece in ids if int(piece) not in marks and int(piece) < self._spoken]

    def _encode_whole(self, sentence: str) -> bytes:
        return array(self._code, self._processor.encode(sentence)).tobytes()


def _special_ids(processor: sentencepiece.SentencePieceProcessor, size: int) -> SpecialIds:
    """The model's own ids; a mark that it lacks gets an id of its own behind the pieces."""
    free = iter(range(size, size + 3))
    bos, eos, pad = (
        mark if mark >= 0 else next(free)
        for mark in (processor.bos_id(), processor.eos_id(), processor.pad_id())
    )
    return SpecialIds(unk=processor.unk_id(), bos=bos, eos=eos, pad=pad)


def join_pieces(segmented: str) -> str:
    """Text whose pieces are joined to words again."""
    return segmented.replace(f"{CONTINUES} ", "").removesuffix(CONTINUES)


class SegmentedModel:
    """The tokens of text that is segmented already: each token is a piece."""

    def __init__(self, path: Path) -> None:
        self._tokens = read_bounded(path, links=True).decode().split("\n")[:-1]
        self.pieces = len(self._tokens)
        self.special = SpecialIds()
        self.fingerprint = sha256_file(path, links=True)
        self.path = path
        self._type = id_type(padded(self.pieces))
        ids = np.arange(self.pieces, dtype=self._type)
        self._ids = {token: ids[index : index + 1].tobytes() for index, token in enumerate(self._tokens)}
        for mark in (self.special.bos, self.special.eos, self.special.pad):
            # Text that happens to spell a mark must not act as one.
            del self._ids[self._tokens[mark]]
        self._unknown = ids[self.special.unk : self.special.unk + 1].tobytes()

    def encode(self, sentences: Sequence[str]) -> Ragged:
        """Ids of each sentence's tokens; a token that the vocabulary lacks is unknown."""
        ids, unknown = self._ids, self._unknown
        rows = (b"".join([ids.get(token, unknown) for token in sentence.split()]) for sentence in sentences)
        return _joined(rows, self._type)

    def decode(self, ids: Sequence[int]) -> str:
        """The sentence, its pieces joined to words again."""
        return join_pieces(" ".join(self.spell(ids)))

    def spell(self, ids: Sequence[int]) -> list[str]:
        """The tokens."""
        marks = {self.special.bos, self.special.eos, self.special.pad}
        return [
            self._tokens[int(piece)] for piece in ids if int(piece) not in marks and int(piece) < self.pieces
        ]

    def count_words(self, sentence: str) -> int:
        """Words of a sentence, their pieces joined."""
        return sum(not token.endswith(CONTINUES) for token in sentence.split())
