from dataclasses import replace

from tests.unit.observe.verdicts.series_story import build_evaluations, build_imported, build_series

from tandem.observe.series.columns import Series
from tandem.observe.verdicts.imported_scores import doubt_scores, score_evidence


def scored(**scores: tuple[float, float]) -> Series:
    """Scores before training and at step 16,004."""
    evaluations = build_evaluations([0, 16_004], [9.4593, 1.7754])
    return build_series(
        imported=build_imported(),
        evaluations=tuple(
            replace(each, scores={name: values[number] for name, values in scores.items()})
            for number, each in enumerate(evaluations)
        ),
    )


def test_a_score_of_pieces_is_told_apart_from_bleu_with_what_an_untrained_model_has() -> None:
    text = doubt_scores(scored(Eval_BLEU_Score=(0.9565, 0.3368)))
    assert "(0.9565 before any training, 0.3368 at step 16,004) is no BLEU of translations" in text
    assert "nothing is translated" in text


def test_a_score_that_nobody_explains_is_not_used() -> None:
    assert "Its dev/bleu is not used" in doubt_scores(scored(**{"dev/bleu": (0.0, 21.0)}))


def test_the_last_value_is_shown_with_its_meaning() -> None:
    (found,) = score_evidence(scored(Eval_BLEU_Score=(0.9565, 0.3368)))
    assert (found.value, found.figure) == (0.3368, "bleu")
    assert "after the reference's own pieces" in found.definition


def test_a_run_without_foreign_scores_has_nothing_to_doubt() -> None:
    assert doubt_scores(build_series()) == ""
    assert score_evidence(build_series()) == ()
