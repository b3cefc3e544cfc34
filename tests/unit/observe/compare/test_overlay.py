"""Curves of several runs over one another."""

from itertools import pairwise
from typing import Any

import pytest
from tests.unit.observe.compare.run_story import build_run
from tests.unit.observe.report.told_run import bare_run

from tandem.errors import TandemError
from tandem.observe.compare.overlay import QUANTITIES, overlay_figure
from tandem.observe.compare.place import AGAINST
from tandem.observe.series.columns import Series


@pytest.fixture(scope="module")
def named() -> dict[str, Series]:
    return {"first": build_run(), "second": build_run(bleu=25.0, step_s=0.7, seed=2)}


def drawn(named: dict[str, Series], quantity: str, against: str) -> dict[str, Any]:
    figure = overlay_figure(named, quantity=quantity, against=against)
    assert figure is not None
    return dict(figure)


@pytest.mark.parametrize("against", AGAINST)
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_every_quantity_has_a_curve_a_run_over_every_axis(
    named: dict[str, Series], quantity: str, against: str
) -> None:
    data = drawn(named, quantity, against)["data"]
    assert [trace["name"] for trace in data] == ["first", "second"]
    assert all(len(trace["x"]) == len(trace["y"]) > 0 for trace in data)
    assert all(len(trace["x"]) <= 600 for trace in data)


def test_the_slower_run_ends_later_on_the_axis_of_time_only(named: dict[str, Series]) -> None:
    ends = {
        against: [trace["x"][-1] for trace in drawn(named, "loss", against)["data"]] for against in AGAINST
    }
    assert ends["steps"][0] == ends["steps"][1]
    assert ends["tokens"][0] == ends["tokens"][1]
    assert ends["time"][1] > 1.3 * ends["time"][0]


def test_curves_are_told_apart_by_colour_and_by_dash(named: dict[str, Series]) -> None:
    many = {f"run-{number:02}": named["first"] for number in range(20)}
    looks = [
        (trace["line"]["color"], trace["line"]["dash"])
        for trace in drawn(many, "valid_loss", "steps")["data"]
    ]
    assert len(set(looks)) == 20
    assert all(one[0] != other[0] and one[1] != other[1] for one, other in pairwise(looks))


def test_a_run_keeps_its_colour_where_another_has_nothing_to_show(named: dict[str, Series]) -> None:
    alone = drawn({"nothing": bare_run(), **named}, "bleu", "steps")["data"]
    beside = drawn({"something": named["first"], **named}, "bleu", "steps")["data"]
    assert [trace["name"] for trace in alone] == ["first", "second"]
    assert [trace["line"] for trace in alone] == [trace["line"] for trace in beside[1:]]


def test_bleu_has_its_intervals(named: dict[str, Series]) -> None:
    error = drawn(named, "bleu", "steps")["data"][0]["error_y"]
    assert error["array"] == pytest.approx([0.6] * 5)
    assert error["arrayminus"] == pytest.approx([0.6] * 5)


def test_a_long_name_fits_a_phone_and_keeps_its_end(named: dict[str, Series]) -> None:
    name = "a-very-long-name-of-a-series-of-runs-with-dropout-0.3"
    shown = drawn({name: named["first"]}, "loss", "steps")["data"][0]["name"]
    assert len(shown) <= 24
    assert shown.endswith("dropout-0.3")


def test_where_no_run_has_it_there_is_no_figure() -> None:
    assert overlay_figure({"bare": bare_run()}, quantity="bleu", against="steps") is None


@pytest.mark.parametrize(("quantity", "against"), [("colour", "steps"), ("loss", "moon")])
def test_what_there_is_not_is_refused_with_what_there_is(
    named: dict[str, Series], quantity: str, against: str
) -> None:
    with pytest.raises(TandemError, match="take one of"):
        overlay_figure(named, quantity=quantity, against=against)
