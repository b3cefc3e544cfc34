"""The recipe as a whole: sections that need one another, and what is evaluated."""

from typing import Any

import pytest
from pydantic import ValidationError

from tandem.config import Recipe

VALID = {"tsv": "/v.tsv"}


def build(*, valid: dict[str, Any] | None = VALID, **sections: dict[str, Any]) -> Recipe:
    data = {"train": [{"tsv": "/a.tsv"}], "valid": valid}
    return Recipe.model_validate({"name": "small", "data": data, **sections})


def contradictions(**sections: Any) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        build(**sections)
    (error,) = caught.value.errors()
    return error["msg"].removeprefix("Value error, ").split("; ")


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        (
            {"subword": {"joint": False}},
            (
                "model.tied is all, which needs one set of pieces for both languages: make it target, "
                "or subword.joint true"
            ),
        ),
        (
            {"optim": {"schedule": "cosine"}, "train": {"max_steps": 4000}},
            (
                "optim.warmup_steps is 4000, but schedule cosine reaches zero at train.max_steps, 4000: "
                "make it at most 3999, or train.max_steps more"
            ),
        ),
        (
            {"optim": {"warmup_steps": 60, "cooldown_steps": 41}, "train": {"max_steps": 100}},
            (
                "optim.cooldown_steps is 41, which with warmup_steps, 60, is more than train.max_steps, 100: "
                "make one of the two smaller, or train.max_steps larger"
            ),
        ),
        (
            {"train": {"patience": 3}, "evaluate": {"every_steps": None}},
            (
                "train.patience waits for evaluations, but there are none: set evaluate.every_steps, "
                "or take it out"
            ),
        ),
        (
            {"train": {"patience": 3}, "valid": None},
            "train.patience waits for evaluations, but there are none: set data.valid, or take it out",
        ),
        (
            {"train": {"patience": 3, "patience_on": "bleu"}, "evaluate": {"sentences": 0}},
            (
                "train.patience_on is bleu, but evaluate.sentences is 0, so nothing is translated: make it "
                "loss, or evaluate.sentences more"
            ),
        ),
    ],
)
def test_sections_that_contradict_each_other_are_named(sections: dict[str, Any], sentence: str) -> None:
    assert contradictions(**sections) == [sentence]


@pytest.mark.parametrize(
    "sections",
    [
        {"subword": {"joint": False}, "model": {"tied": "target"}},
        {"optim": {"schedule": "linear"}, "train": {"max_steps": 4001}},
        {"optim": {"schedule": "inverse_sqrt"}, "train": {"max_steps": 100}},
        {"optim": {"warmup_steps": 60, "cooldown_steps": 40}, "train": {"max_steps": 100}},
        {"train": {"patience": 3}, "evaluate": {"every_steps": None, "every_minutes": 5}},
        {"train": {"patience_on": "bleu"}, "evaluate": {"sentences": 0}},
        {"train": {"patience": 3}, "evaluate": {"sentences": 0}},
    ],
)
def test_sections_at_the_edge_still_fit_together(sections: dict[str, Any]) -> None:
    assert build(**sections).name == "small"


def test_a_run_is_evaluated_if_it_has_both_text_and_time_for_it() -> None:
    assert build().is_evaluated
    assert build(evaluate={"every_steps": None, "every_minutes": 0.5}).is_evaluated
    assert not build(evaluate={"every_steps": None}).is_evaluated
    assert not build(valid=None).is_evaluated


@pytest.mark.parametrize(
    ("section", "values"),
    [
        ("train", {"max_steps": 0}),
        ("train", {"max_steps": None}),
        ("train", {"max_tokens": 0}),
        ("train", {"max_minutes": 0}),
        ("train", {"patience": 0}),
        ("train", {"label_smoothing": 1}),
        ("train", {"precision": "int8"}),
        ("evaluate", {"every_steps": 0}),
        ("evaluate", {"every_minutes": 0}),
        ("evaluate", {"probe_pairs": -1}),
        ("evaluate", {"sentences": -1}),
        ("evaluate", {"beam": 0}),
        ("evaluate", {"length_penalty": -1}),
        ("evaluate", {"tokenize": "mystery"}),
        ("checkpoint", {"every_steps": 0}),
        ("checkpoint", {"every_minutes": 0}),
        ("checkpoint", {"keep_last": 0}),
        ("checkpoint", {"keep_best": -1}),
    ],
)
def test_values_out_of_range_are_refused(section: str, values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        build(**{section: values})
