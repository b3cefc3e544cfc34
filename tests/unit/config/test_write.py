"""Written recipes load as equal ones, and nothing half-written stays behind."""

import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tandem.config import (
    CleanSection,
    Corpus,
    DataSection,
    EvaluateSection,
    ModelSection,
    Recipe,
    SubwordSection,
    load_recipe,
    recipe_yaml,
)

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
paths = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0/"), min_size=1).map(
    lambda name: Path("/texts") / f"x{name}"
)
recipes = st.builds(
    lambda name, seed, path, weight, ratio, every_steps: Recipe(
        name=name,
        seed=seed,
        data=DataSection(train=(Corpus(tsv=path, weight=weight),)),
        clean=CleanSection(max_ratio=ratio, markup=False),
        subword=SubwordSection(kind="unigram", model=path),
        model=ModelSection(preset="big", dropout=0.2),
        evaluate=EvaluateSection(every_steps=every_steps),
    ),
    names,
    st.integers(0, 2**63 - 1),
    paths,
    st.floats(0, 1000, exclude_min=True),
    st.floats(1, 1e300),
    st.none() | st.integers(1, 2000),
)


def recipe_called(name: str, tsv: str = "/a.tsv") -> Recipe:
    return Recipe(name=name, data=DataSection(train=(Corpus(tsv=Path(tsv)),)))


@settings(max_examples=60, deadline=None)
@given(recipe=recipes)
@example(recipe=recipe_called("1e5"))
@example(recipe=recipe_called("08"))
@example(recipe=recipe_called("1_0"))
@example(recipe=recipe_called("no"))
@example(recipe=recipe_called("NULL"))
@example(recipe=recipe_called("odd", tsv="/a\x85b\u2028c\nd.tsv"))
def test_a_written_recipe_loads_as_an_equal_one(recipe: Recipe) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "written.yaml"
        path.write_text(recipe_yaml(recipe), encoding="utf-8", newline="")
        assert load_recipe(path).recipe == recipe


def test_values_that_nobody_set_are_left_out_unless_they_have_another_default() -> None:
    written = recipe_yaml(recipe_called("small")).splitlines()
    assert "  max_tokens: null" not in written
    assert "  every_steps: 1000" in written
    never = Recipe.model_validate({**recipe_called("small").model_dump(), "evaluate": {"every_steps": None}})
    assert "  every_steps: null" in recipe_yaml(never).splitlines()
