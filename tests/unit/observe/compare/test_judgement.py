"""Who is better, or that nobody can say."""

from collections.abc import Callable
from dataclasses import replace
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


def test_where_no_pair_can_be_compared_nothing_is_said_of_the_best() -> None:
    found = judged({"b": None, "c": None}, a=3.0, b=2.0, c=1.0)
    assert (found.verdict, found.better) == ("cannot tell", "")
    assert "cannot be compared with b and c" in found.answer
    assert found.why == "because"


def apart(*sets: str) -> Callable[[Value, Value, float], Outcome]:
    """Only runs of one set can be compared."""

    def tell(one: Value, other: Value, _chance: float) -> Outcome:
        is_same = any(one.run in each and other.run in each for each in sets)
        return Outcome(is_told=True if is_same else None, why="alike" if is_same else f"{other.run} is other")

    return tell


def test_one_that_cannot_be_compared_hides_nothing_of_the_others() -> None:
    values = [Value(run=name, value=value) for name, value in {"x": 9.0, "b": 2.0, "a": 3.0}.items()]
    found = judge(SCORE, values, apart("ab", "x"))
    assert (found.verdict, found.better, found.worse, found.left_out) == ("better", "a", ("b",), ("x",))
    assert "Left out, as not comparable with a: x (9.00)" in found.answer
    assert "x left out: x is other" in found.why
    assert [value.run for value in found.values] == ["x", "a", "b"]


def test_of_sets_of_one_size_that_of_the_best_is_judged() -> None:
    values = [Value(run=name, value=value) for name, value in zip("abcd", (1.0, 2.0, 3.0, 4.0), strict=True)]
    found = judge(SCORE, values, apart("ab", "cd"))
    assert (found.better, found.left_out) == ("d", ("b", "a"))


def test_what_is_no_finite_number_is_worse_than_any_that_is() -> None:
    values = [Value(run="a", value=nan, is_broken=True), Value(run="b", value=1.0)]
    found = judge(SCORE, values, lambda *_: Outcome(is_told=True, why=""))
    assert (found.better, found.worse) == ("b", ("a",))
    both = [replace(value, value=nan, is_broken=True) for value in values]
    assert judge(SCORE, both, lambda *_: Outcome(is_told=True, why="")).verdict == "cannot tell"


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
    assert chances[-4:] == [0.0125] * 4
    assert stretch(0.05) == pytest.approx(1.0)
    assert stretch(0.0125) == pytest.approx(2.4977 / 1.95996, rel=1e-3)


def test_values_are_written_with_their_intervals() -> None:
    value = Value(run="a", value=27.0, low=26.5, high=27.5)
    assert shown(SCORE, value) == "27.00 (26.50 to 27.50)"
    assert short(SCORE, value) == "27.00 ± 0.50"
    assert short(SCORE, Value(run="a", value=27.0)) == "27.00"
    rate = Question(key="rate", title="Rate", unit="tokens/s")
    assert short(rate, Value(run="a", value=1000.0, low=990.0, high=1010.0)) == "1,000 tokens/s ± 1.0 %"
