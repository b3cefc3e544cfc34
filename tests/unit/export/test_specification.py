"""Every shape of model computes the same in CTranslate2, and every id has a token of its own."""

from pathlib import Path

import pytest
import torch
from tests.unit.translate.small_model import write_subword

from tandem.config import ModelSection
from tandem.data.subword.learn import Subword
from tandem.data.subword.model import SegmentedModel
from tandem.export.specification import build_specification, name_pieces
from tandem.model import build_model
from tandem.translate.ctranslate2_engine import Ctranslate2Engine
from tandem.translate.engine import Sentence
from tandem.translate.marks import Marks, build_marks
from tandem.translate.torch_engine import TorchEngine
from tandem.translate.wish import Wish

SHAPES: list[dict[str, object]] = [
    {},
    {"norm": "rms"},
    {"norm_place": "post"},
    {"norm": "rms", "norm_place": "post", "tied": "target"},
    {"activation": "gelu", "tied": "none"},
    {"activation": "silu", "norm_place": "post", "tied": "none"},
    {"gated": True, "positions": "rotary"},
    {"gated": True, "activation": "silu", "norm": "rms", "positions": "rotary", "tied": "target"},
    {"gated": True, "activation": "gelu", "norm_place": "post", "positions": "rotary"},
    {"width": 18, "heads": 3, "feed_forward": 7, "encoder_layers": 1, "decoder_layers": 3},
    {"width": 10, "heads": 1, "feed_forward": 33, "encoder_layers": 3, "decoder_layers": 1},
]
SENTENCES = [
    Sentence(source=(40, 41, 42, 43, 44, 90, 91), prefix=(60, 61, 300, 62), most=4),
    Sentence(source=(70, 7), prefix=(8, 9), most=2),
    Sentence(source=tuple(range(20, 70)), prefix=tuple(range(200, 240)), most=40),
]


@pytest.fixture(scope="module")
def subword(tmp_path_factory: pytest.TempPathFactory) -> Subword:
    return write_subword(tmp_path_factory.mktemp("data") / "subword")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_log_probabilities_are_the_same_for_every_shape(
    subword: Subword, tmp_path: Path, shape: dict[str, object]
) -> None:
    section = ModelSection.model_validate(
        {"preset": "tiny", "width": 16, "heads": 2, "feed_forward": 32, **shape}
    )
    size = subword.vocabulary
    model = build_model(section, source_vocabulary=size, target_vocabulary=size, pad=3, seed=1).eval()
    noise = torch.Generator().manual_seed(2)
    for parameter in model.parameters():  # biases and norms too: as built, they change nothing
        parameter.data += torch.randn(parameter.shape, generator=noise) * 0.2
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    specification = build_specification(section, model.state_dict(), subword)
    specification.validate()
    specification.optimize(quantization="float32")
    specification.save(str(tmp_path))
    marks = build_marks(subword, vocabulary=size)
    exported = Ctranslate2Engine(tmp_path, marks=marks, threads=1)
    wish = Wish(beam=1, token_scores=True)
    own = TorchEngine(model, marks=marks, device=torch.device("cpu")).search(SENTENCES, wish)
    for (one,), (other,) in zip(exported.search(SENTENCES, wish), own, strict=True):
        assert one.ids == other.ids
        assert one.token_scores == pytest.approx(other.token_scores, abs=1e-4)
    torch.testing.assert_close(model.state_dict(), before)


def test_quantization_leaves_the_weights_as_they_are(subword: Subword) -> None:
    section = ModelSection(preset="tiny", width=16, heads=2, feed_forward=32, gated=True)
    size = subword.vocabulary
    model = build_model(section, source_vocabulary=size, target_vocabulary=size, pad=3, seed=1)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    specification = build_specification(section, model.state_dict(), subword)
    specification.validate()
    specification.optimize(quantization="int8")
    torch.testing.assert_close(dict(model.state_dict()), before, rtol=0, atol=0)


def test_two_vocabularies_keep_their_ids(subword: Subword, tmp_path: Path) -> None:
    tokens = ["<unk>", "<s>", "</s>", "<pad>", "der", "Hu@@", "nd", "<empty-8>", "<empty-9>"]
    (tmp_path / "target.txt").write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    both = Subword(source=subword.source, target=SegmentedModel(tmp_path / "target.txt"))
    section = ModelSection(preset="tiny", width=16, heads=2, feed_forward=32, tied="target")
    size = both.vocabulary
    model = build_model(section, source_vocabulary=size, target_vocabulary=size, pad=3, seed=1).eval()
    specification = build_specification(section, model.state_dict(), both)
    specification.validate()
    specification.optimize(quantization="float32")
    specification.save(str(tmp_path))
    marks: Marks = build_marks(both, vocabulary=size)
    exported = Ctranslate2Engine(tmp_path, marks=marks, threads=1)
    sentence = Sentence(source=(300, 301), prefix=(4, 5, 6, 0), most=9)
    (found,) = exported.search([sentence], Wish(beam=1))
    own = TorchEngine(model, marks=marks, device=torch.device("cpu"))
    assert found[0].ids == own.search([sentence], Wish(beam=1))[0][0].ids


def test_every_row_has_a_token_of_its_own(tmp_path: Path) -> None:
    tokens = ["<unk>", "<s>", "</s>", "<pad>", "<empty-8>", "</s>>", "x", "<s>s"]
    (tmp_path / "joint.txt").write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    names = name_pieces(SegmentedModel(tmp_path / "joint.txt"), 16)
    assert names[:8] == tokens
    assert len(set(names)) == 16
