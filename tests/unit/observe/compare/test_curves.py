"""Curves of runs in a terminal: one axis, one scale, and numbers at the ends."""

from dataclasses import replace

import pytest
from rich.cells import cell_len
from tests.unit.observe.compare.run_story import AT, build_run
from tests.unit.observe.verdicts.series_story import build_imported

from tandem.observe.compare.curves import curve_lines
from tandem.observe.series.columns import Series

LONG = "base-with-a-name-that-is-long-as-names-of-runs-are"


def drawn(named: dict[str, Series], *, width: int = 80, ascii_only: bool = False) -> list[str]:
    return [line.plain for line in curve_lines(named, width=width, ascii_only=ascii_only)]


def test_scores_are_drawn_against_steps_tokens_and_time_with_numbers_at_the_ends() -> None:
    lines = drawn({"a": build_run(), "b": build_run(bleu=20.0, seed=2)})
    assert lines[0] == "BLEU on the valid text"
    assert [line.strip().partition(",")[0] for line in lines[1:10:3]] == [
        "against steps",
        "against target tokens",
        "against training time",
    ]
    assert lines[1].endswith("0 to 1,000")
    assert (lines[2].split()[:2], lines[2].split()[-1]) == (["a", "13.6"], "27.0")
    assert lines[3].split()[-1] == "20.0"
    assert lines[10] == "Loss on the valid text"
    assert len(lines) == 20


def test_runs_share_the_axis_and_the_scale() -> None:
    _, _, whole, part, *_ = drawn({"a": build_run(), "b": build_run(at=AT[:3], bleu=20.0, seed=2)})
    cells = {line.split()[0]: line[len("    a  13.6 ") : -len(" 27.0")] for line in (whole, part)}
    assert (cells["a"][-1], "█" in cells["b"]) == ("█", False)
    assert len(cells["a"]) == len(cells["b"])
    assert len(cells["b"].rstrip()) == pytest.approx(len(cells["b"]) * 3 / 5, abs=1)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_keep_to_the_width_and_end_in_no_spaces(width: int) -> None:
    lines = drawn({LONG: build_run(), "横横横": build_run(seed=2, at=AT[:2])}, width=width)
    assert max(map(cell_len, lines)) <= width
    assert all(line == line.rstrip() for line in lines)


def test_a_terminal_that_knows_ascii_alone_gets_no_blocks() -> None:
    assert all(line.isascii() for line in drawn({"a": build_run(), "b": build_run()}, ascii_only=True))


def test_without_scores_the_training_loss_is_drawn() -> None:
    lines = drawn({"a": build_run(evaluations=()), "b": build_run(evaluations=(), seed=2)})
    assert lines[0] == "Training loss"
    assert len(lines) == 10


def test_what_is_not_told_is_left_out() -> None:
    timeless = build_run(imported=build_imported(times="none"), seed=2)
    lines = drawn({"a": timeless, "b": replace(timeless, evaluations=())})
    assert not any("training time" in line for line in lines)
    assert not any(line.split()[0] == "b" for line in lines)
