"""Where two recipes differ, and which differences a resumed run may have."""

from typing import Any

import pytest

from tandem.config import Recipe, differences, may_change_on_resume, recipe_keys


def build(**values: Any) -> Recipe:
    return Recipe.model_validate({"name": "small", "data": {"train": [{"tsv": "/a.tsv"}]}, **values})


def test_a_recipe_does_not_differ_from_itself() -> None:
    assert differences(build(), build()) == []


def test_differing_values_are_named_in_the_order_of_a_recipe() -> None:
    other = build(train={"max_steps": 5}, model={"preset": "tiny", "width": 512}, seed=2)
    assert differences(build(), other) == [
        "seed",
        "model.preset",
        "model.heads",
        "model.encoder_layers",
        "model.decoder_layers",
        "model.feed_forward",
        "train.max_steps",
    ]


def test_text_that_only_one_recipe_has_is_a_difference_in_both_directions() -> None:
    more = build(data={"train": [{"tsv": "/a.tsv"}, {"tsv": "/b.tsv"}]})
    expected = {"data.train.1.tsv", "data.train.1.weight"}
    assert set(differences(build(), more)) == set(differences(more, build())) == expected


@pytest.mark.parametrize(
    "key",
    [
        "train.max_steps",
        "train.max_tokens",
        "train.max_minutes",
        "train.patience",
        "train.patience_on",
        "evaluate.beam",
        "checkpoint.keep_best",
        "data.folder",
    ],
)
def test_when_to_stop_look_and_save_may_change(key: str) -> None:
    assert may_change_on_resume(key)


def test_all_else_may_not_change() -> None:
    fixed = {key.name.partition(".")[0] for key in recipe_keys() if not may_change_on_resume(key.name)}
    assert fixed == {"name", "seed", "data", "clean", "subword", "batch", "model", "optim", "train"}
    assert not may_change_on_resume("train.precision")
    assert not may_change_on_resume("train.label_smoothing")
    assert not may_change_on_resume("data.train.0.folder")
