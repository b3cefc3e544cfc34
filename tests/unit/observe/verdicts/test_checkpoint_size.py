from dataclasses import replace

from tests.unit.observe.verdicts.exchange_story import REFERENCE, imported
from tests.unit.observe.verdicts.series_story import build_checkpoint, build_recipe, build_series

from tandem.observe.verdicts.checkpoint_size import judge


def test_the_size_is_split_and_compared_with_the_parameters() -> None:
    found = judge(build_series(checkpoints=(build_checkpoint(),)))

    assert (found.verdict, found.confidence) == ("measured", "high")
    assert "243.5 MB weights, 487.1 MB optimiser, 0.803 MB the rest" in found.answer
    assert "predict 730.6 MB of weights and optimiser: as it is" in found.answer


def test_a_size_that_the_parameters_do_not_explain_is_remarked_on() -> None:
    recipe = build_recipe(ema_decay=0.999)

    found = judge(build_series(checkpoints=(build_checkpoint(),), recipe=recipe))

    assert "25.0 % less" in found.answer


def test_all_kept_ones_are_added_up() -> None:
    checkpoints = (build_checkpoint(500, is_removed=True), build_checkpoint(600), build_checkpoint(700))

    found = judge(build_series(checkpoints=checkpoints))

    kept = next(each.value for each in found.evidence if each.name == "all kept")
    assert kept == 2 * checkpoints[1].bytes


def test_without_one_only_a_prediction_is_given() -> None:
    named = replace(imported(**REFERENCE), checkpoints=(build_checkpoint(files={}, bytes=0),))
    for series in (build_series(), imported(**REFERENCE), named):
        found = judge(series)

        assert (found.verdict, found.confidence) == ("cannot tell", "none")
        assert "730.6 MB" in found.answer


def test_without_parameters_nothing_is_predicted() -> None:
    assert judge(build_series(starts=())).evidence == ()


def test_an_unknown_number_of_parameters_is_not_compared() -> None:
    found = judge(build_series(starts=(), checkpoints=(build_checkpoint(),)))

    assert found.verdict == "measured"
    assert "predict" not in found.answer
