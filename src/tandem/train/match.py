"""Whether a checkpoint belongs to the recipe and the data that a run is about to go on with."""

from collections.abc import Mapping

from tandem.artefact import JsonValue, fingerprint, read_manifest
from tandem.checkpoint.restore import Restored
from tandem.config import Recipe, differences, load_recipe, may_change_on_resume
from tandem.data.prepared import Prepared
from tandem.data.shards.shardset import SHARDS_KIND, SHARDS_VERSION
from tandem.errors import TandemError

__all__ = ["DATA", "check_match", "describe_data"]

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
