import pytest
from tests.unit.observe.verdicts.series_story import build_series

from tandem.observe import verdicts
from tandem.observe.finding import Finding
from tandem.observe.series.columns import Series
from tandem.observe.verdicts import QUESTIONS, judge_run


def test_an_error_in_one_verdict_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_series: Series) -> Finding:
        raise ValueError("no such column")

    whole = judge_run(build_series())
    monkeypatch.setattr(verdicts, "VERDICTS", (broken, *verdicts.VERDICTS[1:]))
    first, *others = judge_run(build_series())
    assert (first.number, first.verdict, first.confidence) == (1, "cannot tell", "none")
    assert "no such column" in first.answer
    assert (first.key, first.question, first.section) == (whole[0].key, whole[0].question, "duration")
    assert [each.key for each in others] == [each.key for each in whole[1:]]
    assert all("could not be judged" not in each.answer for each in (*whole, *others))


def test_every_answer_is_that_to_its_question() -> None:
    for question, found in zip(QUESTIONS, judge_run(build_series()), strict=True):
        asked = (found.number, found.key, found.question, found.about, found.section)
        assert asked == (question.number, question.key, question.question, question.about, question.key)
