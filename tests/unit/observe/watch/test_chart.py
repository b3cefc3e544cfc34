import math

from tandem.observe.watch.chart import draw_chart, draw_spark


def test_a_falling_curve_falls() -> None:
    chart = draw_chart([8, 7, 6, 5, 4, 3, 2, 1], rows=1)
    assert chart.rows == ["██▇▆▅▃▂▁"]


def test_more_rows_draw_finer_steps_from_the_top_down() -> None:
    assert draw_chart([3, 3, 2, 1], rows=2).rows == ["██▁ ", "███▁"]


def test_the_highest_values_are_cut_off_so_that_the_rest_is_seen() -> None:
    chart = draw_chart([1000.0, *(2.0 - step / 100 for step in range(100))], rows=1)
    assert chart.top < 2.0
    assert chart.low == 1.01
    assert len(set(chart.rows[0])) == 8


def test_a_flat_curve_and_a_single_value_are_seen() -> None:
    assert draw_chart([4.0], rows=2).rows == [" ", "▁"]
    assert draw_chart([4.0, 4.0], rows=1).rows == ["▁▁"]


def test_a_terminal_without_blocks_gets_signs() -> None:
    assert draw_chart([8, 7, 6, 5, 4, 3, 2, 1], rows=1, ascii_only=True).rows[0].isascii()


def test_a_spark_goes_from_nothing_to_the_top_with_the_newest_last() -> None:
    assert draw_spark([0.0, 0.5, 1.0], width=10, top=1.0) == "▁▅█"


def test_a_spark_has_means_where_there_are_more_values_than_columns() -> None:
    assert draw_spark([0.0, 0.0, 1.0, 1.0, 0.0, 1.0], width=3, top=1.0) == "▁█▅"


def test_a_spark_leaves_room_for_what_is_not_known() -> None:
    assert draw_spark([1.0, math.nan, 2.0], width=3, top=2.0, ascii_only=True) == "- #"
    assert draw_spark([], width=3, top=1.0) == ""
