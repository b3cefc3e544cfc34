"""Who is better, or that nobody can say."""

from math import nan

import pytest

from tandem.observe.compare.judgement import Judgement, Outcome, Question, Value, judge, short, shown, stretch

SCORE = Question(key="score", title="Score", unit="")


def judged(told: dict[str, bool | None], **values: float) -> Judgement:
    """`told` says which runs the best is told apart from."""
    return judge(
        SCORE,
        [Value(run=name, value=value) for name, value in values.items()],
        lambda _, other, __: Outcome(is_told=told[other.run], why="because"),
    )


def test_a_run_that_is_told_apart_from_all_others_is_better() -> None:
    found = judged({"b": True, "c": True}, b=1.0, a=3.0, c=2.0)
    assert (found.verdict, found.better, found.worse) == ("better", "a", ("c", "b"))
    assert [value.run for value in found.values] == ["a", "c", "b"]


def test_one_that_is_not_told_apart_from_some_is_not_called_better() -> None:
    found = judged({"b": False, "c": True}, a=3.0, b=2.9, c=1.0)
    assert (found.verdict, found.better, found.worse) == ("inside noise", "", ("c",))
    assert "better than c" in found.answer


def test_where_one_pair_cannot_be_compared_nothing_is_said_of_the_best() -> None:
    found = judged({"b": True, "c": None}, a=3.0, b=2.0, c=1.0)
    assert (found.verdict, found.better) == ("cannot tell", "")
    assert "c" in found.answer


@pytest.mark.parametrize("values", [{}, {"a": 1.0}, {"a": 1.0, "b": nan}])
def test_fewer_than_two_values_cannot_be_compared(values: dict[str, float]) -> None:
    assert judged({}, **values).verdict == "cannot tell"


def test_of_losses_the_lower_is_better() -> None:
    losses = [Value(run="a", value=2.0), Value(run="b", value=1.0)]
    question = Question(key="loss", title="Loss", unit="", is_lower_better=True)
    assert judge(question, losses, lambda *_: Outcome(is_told=True, why="")).better == "b"


def test_the_chance_of_error_is_shared_among_the_pairs() -> None:
    chances: list[float] = []

    def tell(_one: Value, _other: Value, chance: float) -> Outcome:
        chances.append(chance)
        return Outcome(is_told=True, why="")

    judge(SCORE, [Value(run=str(value), value=float(value)) for value in range(5)], tell)
    assert chances == [0.0125] * 4
    assert stretch(0.05) == pytest.approx(1.0)
    assert stretch(0.0125) == pytest.approx(2.4977 / 1.95996, rel=1e-3)


def test_values_are_written_with_their_intervals() -> None:
    value = Value(run="a", value=27.0, low=26.5, high=27.5)
    assert shown(SCORE, value) == "27.00 (26.50 to 27.50)"
    assert short(SCORE, value) == "27.00 ± 0.50"
    assert short(SCORE, Value(run="a", value=27.0)) == "27.00"
    rate = Question(key="rate", title="Rate", unit="tokens/s")
    assert short(rate, Value(run="a", value=1000.0, low=990.0, high=1010.0)) == "1,000 tokens/s ± 1.0 %"
