"""The SentencePiece models of a Marian tokenizer, renumbered: there a second file says which piece has which id."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tandem.errors import TandemError
from tandem.export.tokenizer_json import load_protobuf, read_proto
from tandem.files import read_json

__all__ = ["read_vocabulary", "renumbered"]

_UNKNOWN, _CONTROL, _UNUSED = 2, 3, 5
_UNLIKELY = -1e4


def read_vocabulary(path: Path) -> dict[str, int]:
    """Ids by piece."""
    if not path.is_file():
        raise TandemError(
            f"{path.parent} has no {path.name}: it needs Marian's tokenizer, or if Tandem exported it, the manifest, "
            "recipe and subword model that were beside it."
        )
    try:
        held = read_json(path, links=True)
    except (OSError, ValueError) as error:
        raise TandemError(f"{path} cannot be read as a vocabulary ({error}): copy it again.") from error
    if (
        not isinstance(held, dict)
        or any(type(number) is not int for number in held.values())
        or sorted(held.values()) != list(range(len(held)))
    ):
        raise TandemError(f"{path} does not give each piece an id of its own, from 0 on: copy it again.")
    return held


def renumbered(model: Path, ids: Mapping[str, int], *, start: int) -> bytes:
    """The model with its pieces at these ids; `start` is the id that translations begin with.

    Pieces that it does not know are there, but never found in text.
    """
    if not model.is_file():
        raise TandemError(
            f"{model.parent} has no {model.name}: name the folder of a model with Marian's tokenizer."
        )
    proto = read_proto(model)
    known = {piece.piece: piece for piece in proto.pieces}
    names = sorted(ids, key=ids.__getitem__)
    marks = {"<unk>": _UNKNOWN, "</s>": _CONTROL, "<pad>": _CONTROL, names[start]: _CONTROL}
    missing = [mark for mark in ("<unk>", "</s>", "<pad>") if mark not in ids]
    if missing:
        raise TandemError(f"The vocabulary of {model.parent} has no {missing[0]}: it is not one of Marian's.")
    del proto.pieces[:]
    proto.pieces.extend(_piece(name, known, marks) for name in names)
    spec = proto.trainer_spec
    spec.vocab_size = len(names)
    spec.unk_id, spec.bos_id, spec.eos_id, spec.pad_id = ids["<unk>"], start, ids["</s>"], ids["<pad>"]
    spec.unk_piece, spec.bos_piece, spec.eos_piece, spec.pad_piece = "<unk>", names[start], "</s>", "<pad>"
    return bytes(proto.SerializeToString())


def _piece(name: str, known: Mapping[str, Any], marks: Mapping[str, int]) -> Any:
    if name in known and name not in marks:
        return known[name]
    kind = marks.get(name, _UNUSED)
    score = _UNLIKELY if kind == _UNUSED else 0.0
    return load_protobuf().ModelProto.SentencePiece(piece=name, score=score, type=kind)
