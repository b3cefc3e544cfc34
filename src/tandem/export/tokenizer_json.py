"""A joint SentencePiece model as `tokenizer.json`, which every Hugging Face library reads; the ids stay the same."""

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from tandem.data.shards.special import SpecialIds
from tandem.errors import TandemError
from tandem.files import read_bounded

__all__ = ["SPECIAL_NAMES", "load_protobuf", "read_proto", "vocabulary", "write_tokenizer_json"]

SPECIAL_NAMES = {"unk": "<unk>", "bos": "<s>", "eos": "</s>", "pad": "<pad>"}
SPACE = "▁"
_UNIGRAM, _BPE = 1, 2
_TEXT = {1, 4}
"""Types of pieces: normal ones, and those that the user defined."""
NEVER = -1e4
"""A score that no cut of a sentence has."""


def read_proto(path: Path) -> Any:
    """A SentencePiece model as it lies in its file."""
    proto = load_protobuf().ModelProto()
    proto.ParseFromString(read_bounded(path, links=True))
    return proto


def load_protobuf() -> Any:
    """SentencePiece's own description of its files, which needs the extra's protobuf."""
    return import_module("sentencepiece.sentencepiece_model_pb2")


def vocabulary(proto: Any, special: SpecialIds) -> dict[str, int]:
    """Ids by piece; marks that the model lacks stand behind its pieces."""
    pieces = [piece.piece for piece in proto.pieces]
    ids = {piece: number for number, piece in enumerate(pieces)}
    for mark, number in special.to_facts().items():
        name = pieces[number] if number < len(pieces) else SPECIAL_NAMES[mark]
        if ids.setdefault(name, number) != number:
            raise TandemError(
                f"The subword model has a piece {name} that is not its mark: train one in which it is, to export it."
            )
    return ids


def write_tokenizer_json(folder: Path, proto: Any, special: SpecialIds, *, longest: int) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json`."""
    ids = vocabulary(proto, special)
    names = {number: name for name, number in ids.items()}
    marks = {mark: names[number] for mark, number in special.to_facts().items()}
    library = import_module("tokenizers")
    decoders = library.decoders
    tokenizer = library.Tokenizer(_model(library, proto, ids, marks["unk"]))
    tokenizer.normalizer = library.normalizers.Sequence(list(_normalizers(library, proto.normalizer_spec)))
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace(SPACE, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(content=" ", left=1, right=0),
        ]
    )
    tokenizer.post_processor = library.processors.TemplateProcessing(
        single=f"$A {marks['eos']}", special_tokens=[(marks["eos"], special.eos)]
    )
    tokenizer.add_special_tokens(sorted(marks.values(), key=ids.__getitem__))
    tokenizer.save(str(folder / "tokenizer.json"))
    config: Mapping[str, object] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{f"{mark}_token": name for mark, name in marks.items()},
        "model_max_length": longest,
        "clean_up_tokenization_spaces": False,
        # Text that happens to spell a mark must not act as one.
        "split_special_tokens": True,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def _model(library: Any, proto: Any, ids: Mapping[str, int], unknown: str) -> Any:
    spec = proto.trainer_spec
    if spec.model_type == _UNIGRAM:
        # Only pieces of text are found in text, not marks and bytes that it happens to spell.
        said = {piece.piece: piece.score for piece in proto.pieces if piece.type in _TEXT}
        scored = [(name, said.get(name, NEVER)) for name in sorted(ids, key=ids.__getitem__)]
        return library.models.Unigram(scored, unk_id=ids[unknown], byte_fallback=spec.byte_fallback)
    if spec.model_type == _BPE:
        return library.models.BPE(
            dict(ids),
            list(_merges(proto)),
            unk_token=unknown,
            fuse_unk=True,
            byte_fallback=spec.byte_fallback,
        )
    raise TandemError(
        "The subword model is neither bpe nor unigram, and Hugging Face has no other: train one of these to export it."
    )


def _merges(proto: Any) -> Iterator[tuple[str, str]]:
    """Pairs of pieces that make a piece, those that SentencePiece would join first in front."""
    scores = {piece.piece: piece.score for piece in proto.pieces if piece.type in _TEXT}
    # Stable, so that of equals the piece with the lower id goes first.
    for whole in sorted(scores, key=lambda piece: -scores[piece]):
        cuts = ((whole[:place], whole[place:]) for place in range(1, len(whole)))
        yield from (pair for pair in cuts if pair[0] in scores and pair[1] in scores)


def _normalizers(library: Any, spec: Any) -> Iterator[Any]:
    normalizers = library.normalizers
    if spec.precompiled_charsmap:
        yield normalizers.Precompiled(spec.precompiled_charsmap)
    if spec.remove_extra_whitespaces:
        yield normalizers.Strip(left=True, right=True)
        yield normalizers.Replace(library.Regex(" {2,}"), " ")
    if spec.add_dummy_prefix:
        yield normalizers.Prepend(SPACE)
    yield normalizers.Replace(" ", SPACE)
