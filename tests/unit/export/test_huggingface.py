"""What is exported to Hugging Face computes, searches and writes as our own model does."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
from tests.unit.export.huggingface_model import SENTENCES, spm, write_model
from torch import Tensor

from tandem.checkpoint.bundle import open_bundle
from tandem.checkpoint.marian import theirs
from tandem.data.subword.model import SentencePieceModel
from tandem.errors import TandemError
from tandem.export import huggingface, sample
from tandem.export.huggingface import export_huggingface, write_huggingface
from tandem.export.huggingface_engine import HuggingFaceEngine, load_transformers, quiet
from tandem.export.tokenizer_json import read_proto, write_tokenizer_json
from tandem.model import PaddedTokens, Transformer
from tandem.translate.engine import Sentence
from tandem.translate.open import build_translator
from tandem.translate.penalty import LengthPenalty
from tandem.translate.wish import Wish

CPU = torch.device("cpu")
SHAPES: list[dict[str, Any]] = [
    {"norm_place": "pre", "tied": "all"},
    {"norm_place": "pre", "tied": "target", "activation": "gelu"},
    {"norm_place": "pre", "tied": "none"},
    {"norm_place": "post", "tied": "all", "encoder_layers": 1},
    {"norm_place": "post", "tied": "target", "activation": "silu"},
    {"norm_place": "post", "tied": "none"},
    {"norm_place": "pre", "tied": "all", "norm": "rms", "gated": True, "positions": "rotary"},
    {"norm_place": "post", "tied": "target", "norm": "rms"},
    {"norm_place": "pre", "tied": "none", "gated": True, "activation": "silu"},
    {"norm_place": "pre", "tied": "all", "positions": "rotary"},
]
ODD = [
    "Hello   world ▁ x ",
    "Ünïcödé ﬁ 漢字 😀 ½ … “quotes”",
    "a\tb\u00a0c\u200bd",
    "",
    "x" * 60,
]


ELSEWHERE = """
import json, sys
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

folder, *lines = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
model = AutoModelForSeq2SeqLM.from_pretrained(folder, trust_remote_code=True)
batch = tokenizer(lines, return_tensors="pt", padding=True)
said = model.generate(**batch, num_beams=3, length_penalty=0.6, early_stopping="never", max_length=12)
texts = tokenizer.batch_decode(said, skip_special_tokens=True)
print(json.dumps({"texts": texts, "tandem": "tandem" in sys.modules}))
"""
SPELLED = "<s> </s> <pad> <unk> spelled <0x41>"


@pytest.fixture(scope="session")
def joint() -> bytes:
    return spm(2)


@pytest.fixture(scope="session")
def sides() -> list[bytes]:
    return [spm(0), spm(1)]


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "SENTENCES", 6)


def our_logits(model: Transformer, source: Tensor, target: Tensor) -> Tensor:
    sides = (PaddedTokens(ids=ids, lengths=torch.tensor([ids.shape[1]])) for ids in (source, target))
    with torch.no_grad():
        return model.logits(model(*sides))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(map(str, shape.values())))
def test_logits_are_the_same_for_every_shape_that_can_be_written(
    shape: dict[str, Any], joint: bytes, sides: list[bytes], tmp_path: Path
) -> None:
    models = [joint] if shape["tied"] == "all" else sides
    folder = write_model(tmp_path / "model", models, **shape)
    bundle = open_bundle(folder)
    target = tmp_path / "exported"
    target.mkdir()
    write_huggingface(bundle, target)
    exported: Any = HuggingFaceEngine(target)._model
    ours = Transformer(bundle.recipe.model, source_vocabulary=408, target_vocabulary=408, pad=3)
    ours.load_state_dict(dict(bundle.weights))
    source, said = torch.tensor([[9, 50, 77, 300, 2]]), torch.tensor([[1, 60, 61, 399, 12, 5]])
    with torch.no_grad():
        logits = exported(input_ids=source, decoder_input_ids=said).logits
    assert (logits - our_logits(ours.eval(), source, said)).abs().max() < 1e-5
    kind = "Pegasus" if shape["norm_place"] == "pre" else "Marian"
    is_own = shape.keys() & {"norm", "gated", "positions"}
    assert type(exported).__name__.startswith("Tandem" if is_own else kind)


@pytest.mark.parametrize(
    ("beam", "alpha", "ending"), [(1, 0.6, 0.1), (1, 1.0, 0.1), (4, 0.6, 0.0), (4, 1.0, 0.16)]
)
def test_our_beam_finds_what_theirs_finds_with_the_same_scores(
    beam: int, alpha: float, ending: float, joint: bytes, tmp_path: Path
) -> None:
    folder = write_model(tmp_path / "model", [joint], norm_place="post", ending=ending)
    bundle = open_bundle(folder)
    target = tmp_path / "exported"
    target.mkdir()
    write_huggingface(bundle, target)
    wish = Wish(beam=beam, penalty=LengthPenalty(alpha=alpha, kind="power"))
    rows = [tuple(bundle.subword.source.encode([line]).ids.tolist()) for line in SENTENCES]
    sentences = [Sentence(source=row, most=4 + number % 5) for number, row in enumerate(rows)]
    ours = build_translator(bundle, folder, device=CPU).engine.search(sentences, wish)
    others = HuggingFaceEngine(target).search(sentences, wish)
    assert [found[0].ids for found in ours] == [found[0].ids for found in others]
    assert [found[0].score for found in ours] == pytest.approx([found[0].score for found in others], abs=1e-5)
    assert len({len(found[0].ids) for found in ours}) > 1


@pytest.mark.parametrize("separate", [False, True])
def test_text_goes_in_and_the_same_text_comes_out(
    separate: bool, joint: bytes, sides: list[bytes], tmp_path: Path
) -> None:
    shape: dict[str, Any] = {"norm_place": "post", "tied": "target"} if separate else {"norm_place": "pre"}
    folder = write_model(tmp_path / "model", sides if separate else [joint], **shape)
    verified = export_huggingface(folder, tmp_path / "exported")
    assert verified.sentences == 6
    assert verified.largest_score_difference < 1e-4
    transformers = load_transformers()
    with quiet():
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(tmp_path / "exported"))
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(str(tmp_path / "exported"))
        asked = tokenizer(SENTENCES, return_tensors="pt", padding=True)
        said = model.generate(**asked, max_length=12, num_beams=1)
    texts = tokenizer.batch_decode(said, skip_special_tokens=True)
    translator = build_translator(open_bundle(folder), folder, device=CPU)
    wish = Wish(beam=1, penalty=LengthPenalty(kind="power"))
    subword = translator.subword
    rows = [tuple(subword.source.encode([line]).ids.tolist()) for line in SENTENCES]
    found = translator.engine.search([Sentence(source=row, most=11) for row in rows], wish)
    assert texts == [subword.target.decode(each[0].ids) for each in found]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_the_tokenizer_splits_and_joins_as_sentencepiece_does(kind: str, tmp_path: Path) -> None:
    (tmp_path / "subword.model").write_bytes(spm(2, kind=kind))
    ours = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "subword.model"))
    special = SentencePieceModel(tmp_path / "subword.model").special
    write_tokenizer_json(tmp_path, read_proto(tmp_path / "subword.model"), special, longest=1024)
    fast = load_transformers().PreTrainedTokenizerFast.from_pretrained(str(tmp_path))
    # Hugging Face's unigram takes text that spells a mark for the mark where < is no piece.
    for line in [*SENTENCES, *ODD, *([SPELLED] if kind == "bpe" else [])]:
        ids = ours.encode(line)
        assert fast(line)["input_ids"] == [*ids, 2], line
        assert fast.decode(ids, skip_special_tokens=True) == ours.decode(ids), line


@pytest.mark.parametrize("shape", SHAPES[6:7], ids=["demo"])
def test_what_no_class_of_theirs_computes_takes_its_code_along(
    shape: dict[str, Any], joint: bytes, tmp_path: Path
) -> None:
    """Where Tandem is not, the folder computes what `tandem translate` computes."""
    folder = write_model(tmp_path / "model", [joint], **shape)
    export_huggingface(folder, tmp_path / "exported")
    environment = {**os.environ, "HF_MODULES_CACHE": str(tmp_path / "modules"), "HF_HUB_OFFLINE": "1"}
    said = subprocess.run(
        [sys.executable, "-I", "-c", ELSEWHERE, tmp_path / "exported", *SENTENCES[:3]],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    translator = build_translator(open_bundle(folder), folder, device=CPU)
    wish = Wish(beam=3, penalty=LengthPenalty(kind="power"))
    rows = [tuple(translator.subword.source.encode([line]).ids.tolist()) for line in SENTENCES[:3]]
    found = translator.engine.search([Sentence(source=row, most=11) for row in rows], wish)
    texts = [translator.subword.target.decode(each[0].ids) for each in found]
    assert json.loads(said.stdout) == {"texts": texts, "tandem": False}


def test_pieces_of_another_tool_are_refused_by_their_key(
    joint: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_model(tmp_path / "model", [joint], norm_place="pre")
    monkeypatch.setattr(huggingface, "SentencePieceModel", str)
    with pytest.raises(TandemError, match=r"subword\.kind segmented"):
        export_huggingface(folder, tmp_path / "exported")
    assert not (tmp_path / "exported").exists()


def test_an_export_that_computes_otherwise_leaves_nothing(
    joint: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_model(tmp_path / "model", [joint], norm_place="pre")

    def wrong(weights: dict[str, Tensor], section: Any) -> dict[str, Tensor]:
        tensors = theirs(weights, section)
        return {**tensors, "model.decoder.layers.0.fc1.weight": -tensors["model.decoder.layers.0.fc1.weight"]}

    monkeypatch.setattr(huggingface, "theirs", wrong)
    with pytest.raises(TandemError, match="not kept"):
        export_huggingface(folder, tmp_path / "exported")
    assert {path.name for path in tmp_path.iterdir()} - {"exported.lock"} <= {"model", "model.lock"}


def test_a_tokenizer_that_splits_otherwise_leaves_nothing(
    joint: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_model(tmp_path / "model", [joint])
    monkeypatch.setattr(huggingface, "read_proto", lambda path: _lower(read_proto(path)))
    with pytest.raises(TandemError, match="does not split"):
        export_huggingface(folder, tmp_path / "exported")
    assert not (tmp_path / "exported").exists()


def _lower(proto: Any) -> Any:
    proto.normalizer_spec.add_dummy_prefix = False
    return proto


def test_exported_search_settings_are_the_recipes(joint: bytes, tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", [joint])
    bundle = open_bundle(folder)
    recipe = bundle.recipe.model_copy(
        update={"evaluate": bundle.recipe.evaluate.model_copy(update={"length_penalty": 0.9})}
    )
    (tmp_path / "exported").mkdir()
    write_huggingface(replace(bundle, recipe=recipe), tmp_path / "exported")
    settings = load_transformers().GenerationConfig.from_pretrained(str(tmp_path / "exported"))
    assert (settings.num_beams, settings.length_penalty) == (3, 0.9)
    assert set(settings.suppress_tokens) == {0, 1, 3, *range(403, 408)}


def test_a_greedy_recipe_is_exported_without_a_length_penalty(joint: bytes, tmp_path: Path) -> None:
    bundle = open_bundle(write_model(tmp_path / "model", [joint]))
    recipe = bundle.recipe.model_copy(
        update={"evaluate": bundle.recipe.evaluate.model_copy(update={"beam": 1})}
    )
    (tmp_path / "exported").mkdir()
    write_huggingface(replace(bundle, recipe=recipe), tmp_path / "exported")
    said = json.loads((tmp_path / "exported/generation_config.json").read_text())
    assert (said["num_beams"], said.get("length_penalty")) == (1, None)
