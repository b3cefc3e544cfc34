import copy
import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest
import torch

from tandem.artefact import JsonValue
from tandem.config import Recipe
from tandem.errors import TandemError
from tandem.parallel.world import SoloWorld
from tandem.train.alike import Files, check_alike, name_host

RecipeWith = Callable[..., Recipe]
FILES: Files = {
    "training shards": ("aaaa1111" * 8, "/data/train"),
    "subword model": ("bbbb2222" * 8, "/data/subword"),
}


@dataclass(frozen=True, kw_only=True)
class OtherHost(SoloWorld):
    """A second host, which tells the same but for one change; what was gathered is counted."""

    change: Callable[[dict[str, Any]], None]
    gathered: list[JsonValue]

    def gather(self, value: JsonValue) -> list[JsonValue]:
        self.gathered.append(value)
        other = cast(dict[str, Any], copy.deepcopy(value))
        if "host" in other:
            other["host"] = "h2"
        self.change(other)
        return [value, other]


@pytest.fixture(autouse=True)
def on_h1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "node", lambda: "h1")


def two_hosts(change: Callable[[dict[str, Any]], None]) -> OtherHost:
    return OtherHost(device=torch.device("cpu"), size=2, is_one_host=False, change=change, gathered=[])


def refusal(change: Callable[[dict[str, Any]], None], recipe: Recipe) -> str:
    with pytest.raises(TandemError) as caught:
        check_alike(two_hosts(change), recipe, FILES)
    return str(caught.value)


def test_hosts_that_have_the_same_ask_once_and_go_on(micro: Recipe) -> None:
    world = two_hosts(lambda _: None)
    assert check_alike(world, micro, FILES) == ("h1", "h2")
    assert len(world.gathered) == 1


@pytest.mark.parametrize("what", ["Tandem", "PyTorch"])
def test_another_version_is_named_with_both_hosts(micro: Recipe, what: str) -> None:
    told = refusal(lambda other: other["versions"].update({what: "0.0.1"}), micro)
    assert told.startswith(f"h1 has {what} ")
    assert "but h2 has 0.0.1: install the same version" in told


def test_another_recipe_is_named_by_its_keys(micro: Recipe) -> None:
    def change(other: dict[str, Any]) -> None:
        if "host" in other:
            other["recipe"] = "another"
        else:
            other.update({"model.width": "48", "seed": "9"})

    world = two_hosts(change)
    with pytest.raises(
        TandemError, match=r"h1 and h2 do not have the same recipe \(different: (.*)\): "
    ) as caught:
        check_alike(world, micro, FILES)
    assert "seed, model.width" in str(caught.value)
    assert len(world.gathered) == 2


def test_where_the_data_lies_may_differ_but_not_what_it_weighs(recipe_with: RecipeWith) -> None:
    def mark(*overrides: str) -> str:
        world = two_hosts(lambda _: None)
        check_alike(world, recipe_with(*overrides), FILES)
        return str(cast(dict[str, Any], world.gathered[0])["recipe"])

    assert mark() == mark("data.folder=/somewhere/else")
    assert mark() != mark("data.train.0.weight=2")
    assert mark() != mark("data.valid=null")


def test_other_files_are_named_with_their_places(micro: Recipe) -> None:
    def change(other: dict[str, Any]) -> None:
        other["files"]["subword model"] = ["cccc3333" * 8, "/mnt/subword"]

    assert refusal(change, micro) == (
        "h1 and h2 do not have the same subword model: /data/subword on h1 is bbbb2222…, /mnt/subword on h2 is "
        "cccc3333…; copy one of them to the other host, as tandem data push does."
    )


def test_a_host_that_could_not_open_its_files_is_named_before_anything_else(micro: Recipe) -> None:
    def change(other: dict[str, Any]) -> None:
        other.update(failure="There is no folder /data: make it.", files={}, recipe="another")

    assert refusal(change, micro) == "h2: There is no folder /data: make it."


def test_another_device_is_refused_only_where_weights_would_drift_apart(recipe_with: RecipeWith) -> None:
    def change(other: dict[str, Any]) -> None:
        other["device"] = "NVIDIA H200"

    check_alike(two_hosts(change), recipe_with(), FILES)
    told = refusal(change, recipe_with("optim.algorithm=muon"))
    assert told.startswith("h1 computes on a CPU (")
    assert "but h2 on NVIDIA H200: with optim.algorithm muon their weights would drift apart" in told


def test_ranks_of_one_host_are_told_apart_by_number(micro: Recipe) -> None:
    def change(other: dict[str, Any]) -> None:
        other["host"] = "h1"
        other["versions"]["PyTorch"] = "1.0"

    assert "but rank 1 of h1 has 1.0" in refusal(change, micro)


def test_alone_a_host_is_not_named() -> None:
    assert name_host(["h1", "h1"], 1, "No room.") == "No room."
    assert name_host(["h1", "h2"], 1, "No room.") == "h2: No room."
