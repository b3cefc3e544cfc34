"""Whether a checkpoint belongs to the recipe and the data that a run is about to go on with."""

from collections.abc import Mapping

from tandem.artefact import JsonValue, Manifest, fingerprint, read_manifest
from tandem.checkpoint.restore import Restored
from tandem.config import Recipe, differences, load_recipe, may_change_on_resume
from tandem.data.corpus.held_out import KIND as TEXT_KIND
from tandem.data.corpus.held_out import VERSION as TEXT_VERSION
from tandem.data.prepared import Prepared
from tandem.data.shards.shardset import SHARDS_KIND, SHARDS_VERSION
from tandem.errors import TandemError
from tandem.train.alike import Files
from tandem.train.validate import VALID

__all__ = ["DATA", "check_match", "describe_data", "describe_files"]

DATA = "data"
_SHOWN = 3


def describe_data(prepared: Prepared) -> str:
    """A fingerprint of the training pairs, their order and their pieces, wherever they lie."""
    manifest = read_manifest(prepared.train_folder, kind=SHARDS_KIND, version=SHARDS_VERSION)
    held: Mapping[str, JsonValue] = {
        "shards": manifest.fingerprint,
        "subword": prepared.subword().fingerprint,
        "weights": [corpus.weight for corpus in prepared.recipe.data.train],
    }
    return fingerprint(held)


def describe_files(prepared: Prepared) -> Files:
    """All that a run reads, byte for byte."""
    train, subword = prepared.train_folder, prepared.subword_folder
    shards = read_manifest(train, kind=SHARDS_KIND, version=SHARDS_VERSION)
    files = {
        "training shards": (_contents(shards), str(train.resolve())),
        "subword model": (prepared.subword().fingerprint, str(subword.resolve())),
    }
    if prepared.recipe.data.valid is not None:
        folder, text = prepared.held_out_folder(VALID), prepared.held_out_text_folder(VALID)
        shards = read_manifest(folder, kind=SHARDS_KIND, version=SHARDS_VERSION)
        lines = read_manifest(text, kind=TEXT_KIND, version=TEXT_VERSION)
        files["valid set"] = (
            fingerprint([_contents(shards), _contents(lines)]),
            str(folder.parent.resolve()),
        )
    return files


def _contents(manifest: Manifest) -> str:
    return fingerprint([manifest.fingerprint, {name: entry.sha256 for name, entry in manifest.files.items()}])


def check_match(restored: Restored, recipe: Recipe, data: str) -> None:
    """Refuse to go on with another recipe or other data; what only says when to stop, look or save may change."""
    before = load_recipe(restored.folder / "recipe.yaml").recipe
    changed = [
        key
        for key in differences(before, recipe)
        if not may_change_on_resume(key) and not key.startswith("data.")
    ]
    if changed:
        shown = ", ".join(changed[:_SHOWN]) + (" …" if len(changed) > _SHOWN else "")
        raise TandemError(
            f"{restored.folder} was made with another recipe (different: {shown}): "
            "take the old values, or train in another folder with --run."
        )
    if restored.state.get(DATA) != data:
        raise TandemError(
            f"{restored.folder} was trained on other data than {recipe.prepared_folder} holds now: "
            "prepare the same data, or train in another folder with --run."
        )
