"""What is read from Hugging Face's format translates as it did there; what cannot be exact is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.unit.export.huggingface_model import SENTENCES, spm, write_model
from typer.testing import CliRunner

from tandem.checkpoint.bundle import open_bundle
from tandem.checkpoint.huggingface import is_huggingface, open_huggingface
from tandem.cli.app import app
from tandem.errors import TandemError
from tandem.export import sample
from tandem.export.from_huggingface import import_huggingface
from tandem.export.huggingface import export_huggingface
from tandem.export.huggingface_engine import load_transformers, quiet
from tandem.translate.open import open_model

LANGUAGES = ("en", "de")


@pytest.fixture(scope="session")
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Exports with their checkpoints: a joint pre-norm model, a post-norm one with a vocabulary a side, the demo's."""
    root = tmp_path_factory.mktemp("exports")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample, "SENTENCES", 3)
        write_model(root / "joint", [spm(2)], tied="all")
        write_model(root / "separate", [spm(0), spm(1)], norm_place="post", tied="target")
        write_model(root / "demo", [spm(2)], norm="rms", gated=True, activation="silu", positions="rotary")
        for name in ("joint", "separate", "demo"):
            export_huggingface(root / name, root / f"{name}-exported")
    return {path.name: path for path in root.iterdir() if path.is_dir()}


@pytest.fixture
def bare(exports: dict[str, Path], tmp_path: Path) -> Path:
    """The post-norm export without manifest and recipe: files of Hugging Face alone, but with our waves among them."""
    folder = tmp_path / "bare marian"
    folder.mkdir()
    for path in exports["separate-exported"].iterdir():
        if path.name not in {"manifest.json", "recipe.yaml"}:
            (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.mark.parametrize("name", ["joint", "separate", "demo"])
def test_an_export_comes_back_with_the_same_weights_and_recipe(
    name: str, exports: dict[str, Path], tmp_path: Path
) -> None:
    import_huggingface(exports[f"{name}-exported"], tmp_path / "back", languages=LANGUAGES)
    before, after = open_bundle(exports[name]), open_bundle(tmp_path / "back")
    assert before.weights.keys() == after.weights.keys()
    assert all(torch.equal(before.weights[key], after.weights[key]) for key in before.weights)
    assert (before.recipe, before.subword.fingerprint) == (after.recipe, after.subword.fingerprint)


def test_an_export_opens_as_it_is(exports: dict[str, Path]) -> None:
    folder = exports["joint-exported"]
    assert is_huggingface(folder)
    assert not is_huggingface(exports["joint"])
    assert open_huggingface(folder).recipe.model.norm_place == "pre"


@pytest.mark.parametrize("name", ["separate", "demo"])
def test_an_export_and_its_import_translate_as_the_checkpoint(
    name: str, exports: dict[str, Path], tmp_path: Path
) -> None:
    said = CliRunner().invoke(
        app, ["import", "huggingface", str(exports[f"{name}-exported"]), str(tmp_path / "back")]
    )
    assert said.exit_code == 0
    texts = [
        [found.text for found in open_model(folder, engine="torch", device="cpu").translate(SENTENCES[:3])]
        for folder in (exports[name], exports[f"{name}-exported"], tmp_path / "back")
    ]
    assert texts[0] == texts[1] == texts[2]


@pytest.mark.parametrize(("name", "trainable"), [("joint", True), ("separate", False)])
def test_training_further_is_offered_where_one_subword_model_serves_both(
    name: str, trainable: bool, exports: dict[str, Path], tmp_path: Path
) -> None:
    said = CliRunner().invoke(
        app, ["import", "huggingface", str(exports[f"{name}-exported"]), str(tmp_path / "back")]
    )
    assert "translates." in said.stdout
    assert ("train.start_from=" in said.stdout) == trainable
    assert (tmp_path / "back/subword.model").is_file() == trainable


def test_a_damaged_export_is_refused_by_its_file(exports: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    folder.mkdir()
    for path in exports["joint-exported"].iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (folder / "model.safetensors").write_bytes(data)
    with pytest.raises(TandemError, match=r"model\.safetensors"):
        open_huggingface(folder)


def test_an_export_that_lost_manifest_and_recipe_keeps_weights_pieces_and_marks(
    bare: Path, exports: dict[str, Path], tmp_path: Path
) -> None:
    import_huggingface(bare, tmp_path / "back", languages=("en", "fr"))
    before, after = open_bundle(exports["separate"]), open_bundle(tmp_path / "back")
    assert all(torch.equal(before.weights[key], after.weights[key]) for key in before.weights)
    for one, other in (
        (before.subword.source, after.subword.source),
        (before.subword.target, after.subword.target),
    ):
        assert one.encode(SENTENCES).ids.tolist() == other.encode(SENTENCES).ids.tolist()
        assert one.special == other.special
    recipe = after.recipe
    assert (recipe.name, recipe.data.target_language, recipe.subword.joint) == ("bare-marian", "fr", False)


def test_an_export_of_our_own_class_needs_what_lay_beside_its_weights(
    exports: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "bare"
    folder.mkdir()
    for name in ("config.json", "model.safetensors", "modeling_tandem.py", "tokenizer.json"):
        (folder / name).write_bytes((exports["demo-exported"] / name).read_bytes())
    with pytest.raises(TandemError, match="lost the manifest"):
        import_huggingface(folder, tmp_path / "back", languages=LANGUAGES)
    assert not (tmp_path / "back").exists()


def test_a_marian_model_that_transformers_saved_is_refused_for_its_waves(bare: Path, tmp_path: Path) -> None:
    with quiet():
        model = load_transformers().MarianMTModel.from_pretrained(str(bare), local_files_only=True)
        model.save_pretrained(str(bare))
    with pytest.raises(
        TandemError, match=r"has no position table .*its waves are those of transformers"
    ) as refused:
        import_huggingface(bare, tmp_path / "back", languages=LANGUAGES)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize("added", [-torch.inf, 1.0])
def test_a_bias_of_padding_alone_changes_nothing(
    added: float, bare: Path, exports: dict[str, Path], tmp_path: Path
) -> None:
    pad = json.loads((bare / "config.json").read_text())["pad_token_id"]
    _tensor(bare, "final_logits_bias", lambda bias: bias.index_fill(1, torch.tensor([pad]), added))
    import_huggingface(bare, tmp_path / "back", languages=LANGUAGES)
    before, after = open_bundle(exports["separate"]), open_bundle(tmp_path / "back")
    assert all(torch.equal(before.weights[key], after.weights[key]) for key in before.weights)


def test_a_checkpoint_is_not_imported_over(exports: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(TandemError, match="is not overwritten"):
        import_huggingface(exports["joint-exported"], tmp_path, languages=LANGUAGES)
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_a_shared_vocabulary_with_two_models_keeps_its_ids(exports: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_bytes((exports["joint-exported"] / name).read_bytes())
    joint = open_bundle(exports["joint"]).subword.source
    pieces = {spelled: number for number in range(403) for spelled in joint.spell([number])}
    pieces |= {"<s>": 1, "</s>": 2, "<pad>": 3}
    (folder / "vocab.json").write_text(json.dumps(pieces))
    for number, name in enumerate(("source.spm", "target.spm")):
        (folder / name).write_bytes(spm(number))
    import_huggingface(folder, tmp_path / "back", languages=LANGUAGES)
    bundle = open_bundle(tmp_path / "back")
    assert (bundle.recipe.model.tied, bundle.recipe.subword.joint) == ("target", False)
    for side in (bundle.subword.source, bundle.subword.target):
        ids = side.encode(["The dog"]).ids.tolist()
        assert ids
        assert side.spell(ids) == [next(p for p, number in pieces.items() if number == each) for each in ids]


def _turn_vocabulary(folder: Path) -> None:
    ids = json.loads((folder / "vocab.json").read_text())
    turned = {piece: len(ids) - 1 - number for piece, number in ids.items()}
    (folder / "vocab.json").write_text(json.dumps(turned))


def _config(folder: Path, **said: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **said}))


def _tensor(folder: Path, name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file(
        {**weights, name: change(weights[name])}, folder / "model.safetensors", metadata={"format": "pt"}
    )


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), "safetensors"),
        (lambda folder: (folder / "config.json").unlink(), "config.json"),
        (lambda folder: (folder / "config.json").write_text("{"), "not JSON"),
        (lambda folder: (folder / "vocab.json").unlink(), "vocab.json"),
        (lambda folder: (folder / "source.spm").unlink(), "source.spm"),
        (_turn_vocabulary, "two ids for <unk>"),
        (lambda folder: _config(folder, model_type="t5"), "'t5'"),
        (lambda folder: _config(folder, scale_embedding=False), "scale_embedding"),
        (lambda folder: _config(folder, activation_function="tanh"), "'tanh'"),
        (lambda folder: _config(folder, decoder_ffn_dim=7), "ffn_dim"),
        (lambda folder: _config(folder, encoder_layers=9), "layers.2"),
        (lambda folder: _tensor(folder, "final_logits_bias", lambda bias: bias + 1), "final_logits_bias"),
        (
            lambda folder: _tensor(
                folder, "model.encoder.embed_positions.weight", lambda waves: waves.flip(0)
            ),
            "position waves",
        ),
    ],
)
def test_what_cannot_be_read_exactly_is_refused_in_one_sentence(
    spoil: Callable[[Path], object], sentence: str, bare: Path, tmp_path: Path
) -> None:
    spoil(bare)
    with pytest.raises(TandemError, match=sentence) as refused:
        import_huggingface(bare, tmp_path / "back", languages=LANGUAGES)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "back").exists()
