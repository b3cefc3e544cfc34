"""What differs between runs."""

from dataclasses import replace

from tests.unit.observe.compare.run_story import build_run
from tests.unit.observe.report.told_run import card
from tests.unit.observe.verdicts.series_story import build_process, build_samples, build_start

from tandem.observe.compare.differences import Differences, differences
from tandem.observe.series.columns import Series


def found(**named: Series) -> dict[str, Differences]:
    return {each.title: each for each in differences(named)}


def rows(respect: Differences) -> dict[str, tuple[str, ...]]:
    return {row.key: row.values for row in respect.rows}


def test_recipes_are_compared_by_whole_keys_and_equal_ones_only_counted() -> None:
    recipe = found(a=build_run(), b=build_run(seed=2, width=1024))["Recipe"]
    assert rows(recipe) == {"seed": ("1", "2"), "model.width": ("512", "1024")}
    assert recipe.same > 5


def test_a_key_that_one_recipe_lacks_is_a_difference() -> None:
    other = build_run()
    longer = replace(other, recipe={**other.recipe, "subword": {"kind": "bpe"}})
    assert rows(found(a=other, b=longer)["Recipe"]) == {"subword.kind": ("–", "bpe")}


def test_a_run_without_a_recipe_is_named_and_differs_in_nothing() -> None:
    recipe = found(a=build_run(), b=replace(build_run(), recipe={}))["Recipe"]
    assert recipe.untold == ("b",)
    assert recipe.rows == ()


def test_data_differs_by_counts_and_by_the_fingerprint_of_its_files() -> None:
    one = card()
    corpus = one.corpora[0]
    file = replace(corpus.files[0], sha256="0" * 64)
    other = replace(one, corpora=(replace(corpus, kept=corpus.kept - 1, files=(file,)), *one.corpora[1:]))
    data = rows(found(a=build_run(), b=build_run(card=other))["Data"])
    assert set(data) == {f"{corpus.name}: lines kept", f"{corpus.name}: fingerprint of its files"}


def test_versions_and_ways_of_computing_are_the_environment() -> None:
    newer = tuple(replace(build_process(rank), torch="2.14.0") for rank in range(2))
    starts = ((5.0, build_start(precision="bf16")),)
    environment = rows(found(a=build_run(), b=build_run(processes=newer, starts=starts))["Environment"])
    assert environment == {"PyTorch": ("2.13.0", "2.14.0"), "precision": ("fp16", "bf16")}


def test_machines_ranks_and_gpus_are_the_hosts() -> None:
    one = build_run(samples={"alpha": build_samples(5)})
    other = build_run(
        samples={"beta": build_samples(5, gpus=8)},
        processes=(build_process(0, host="beta"),),
        starts=((5.0, build_start(ranks=8)),),
    )
    hosts = rows(found(a=one, b=other)["Hosts"])
    assert hosts["ranks"] == ("2", "8")
    assert hosts["hosts"] == ("alpha", "beta")
    assert hosts["GPUs"] == ("1 × NVIDIA V100", "8 × NVIDIA V100")
