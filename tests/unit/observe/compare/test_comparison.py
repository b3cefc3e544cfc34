"""The whole comparison, and its forms for people and machines."""

import json
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from tests.unit.observe.compare.run_story import AT, build_run
from tests.unit.observe.report.told_run import bare_run

from tandem.errors import TandemError
from tandem.observe.compare.comparison import Comparison, compare_runs, name_runs
from tandem.observe.compare.document import comparison_text
from tandem.observe.compare.html import comparison_page
from tandem.observe.compare.terminal import render_comparison


@pytest.fixture(scope="module")
def compared() -> Comparison:
    return compare_runs({"wide": build_run(width=1024, bleu=31.0), "<b>old</b>": build_run(seed=2)})


def printed(comparison: Comparison, width: int = 80) -> str:
    console = Console(file=StringIO(), width=width, highlight=False)
    render_comparison(comparison, console)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_runs_are_called_after_their_folders_and_numbered_where_alike(tmp_path: Path) -> None:
    paths = [tmp_path / "x" / "run", tmp_path / "y" / "run", tmp_path / "other"]
    assert list(name_runs(paths)) == ["run", "run-2", "other"]


def test_a_run_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "run")
    for other in (tmp_path / "run", tmp_path / "run" / ".." / "run", tmp_path / "link"):
        with pytest.raises(TandemError, match="is named twice: name each run once"):
            name_runs([tmp_path / "run", other])


def test_where_nothing_differs_the_contents_say_none(compared: Comparison) -> None:
    contents = comparison_page(compared).decode().partition("<nav")[2].partition("</nav>")[0]
    told = re.findall(r'What differs: \w+</span><span class="glance">([^<]*)<', contents)
    assert told == [str(len(each.rows)) if each.rows else "none" for each in compared.differences]
    assert "none" in told


def test_the_terminal_has_curves_in_its_width_and_without_colour_in_a_file(compared: Comparison) -> None:
    text = printed(compared)
    assert "against steps, 0 to 1,000" in text
    assert "█" in text.partition("BLEU on the valid text")[2]
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_one_run_cannot_be_compared() -> None:
    with pytest.raises(TandemError, match="at least two"):
        compare_runs({"a": build_run()})


def test_an_unfinished_run_and_uneven_lengths_are_told_of() -> None:
    short = replace(build_run(seed=2, at=AT[:2]), ended="", is_closed=False, steps=build_run().steps)
    notes = " ".join(compare_runs({"a": build_run(), "b": short}).notes)
    assert "b has not ended" in notes
    assert "scored unequally often" in notes


def test_a_run_whose_loss_broke_is_told_of() -> None:
    run = build_run(seed=2)
    last = [replace(each, valid_loss=float("inf")) for each in run.evaluations[-2:]]
    named = {"a": build_run(), "b": replace(run, evaluations=(*run.evaluations[:-2], *last))}
    notes = " ".join(compare_runs(named).notes)
    assert "b: its valid loss is no finite number since step 800." in notes
    assert "a: its valid loss" not in notes


def test_a_run_that_is_left_out_is_marked() -> None:
    other = build_run(seed=3, evaluated={"sentences": 2999})
    text = printed(compare_runs({"a": build_run(), "b": build_run(seed=2), "c": other}), width=120)
    assert "27.00 ± 0.60 ?" in text
    assert "? left out: cannot be compared with the others" in text


def test_the_page_begins_with_links_to_all_that_is_in_it(compared: Comparison) -> None:
    page = comparison_page(compared).decode()
    links = re.findall(r'<a href="#([^"]+)"', page)
    assert {"bleu_best", "step_s", "curves-loss", "differences-recipe", "differences-hosts"} <= set(links)
    assert all(f'id="{link}"' in page for link in links)
    assert page.index('href="#bleu_best"') < page.index('id="bleu_best"')


def test_runs_with_nothing_in_common_are_compared_without_a_word_on_who_is_better() -> None:
    found = compare_runs({"a": build_run(), "b": bare_run()})
    assert {each.better for each in found.judgements} == {""}


def test_the_terminal_shows_answers_reasons_and_differences_within_its_width(compared: Comparison) -> None:
    text = printed(compared)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "● wide" in text
    assert "model.width" in text
    assert "not for their recipes" in " ".join(text.split())
    assert "intervals from resampling sentences" in " ".join(text.split())


def test_recipes_over_seeds_are_told_as_sentences() -> None:
    named = {f"a{seed}": build_run(seed=seed, bleu=27 + 0.1 * seed) for seed in (1, 2, 3)}
    text = printed(compare_runs({**named, "b": build_run(width=9, bleu=33.0)}))
    assert "Recipes, over their seeds: best BLEU" in text


def test_the_document_is_strict_json_with_every_judgement(compared: Comparison) -> None:
    held = json.loads(comparison_text(compared))
    assert held["version"] == 1
    assert [run["name"] for run in held["runs"]] == ["wide", "<b>old</b>"]
    best = next(each for each in held["judgements"] if each["question"]["key"] == "bleu_best")
    assert (best["verdict"], best["better"]) == ("better", "wide")
    assert best["values"][0]["low"] == pytest.approx(30.4)
    assert "NaN" not in comparison_text(compared)


def test_the_page_is_the_same_each_time_and_takes_names_as_text(compared: Comparison) -> None:
    page = comparison_page(compared)
    assert page == comparison_page(compared)
    assert b"<b>old</b>" not in page
    assert b"&lt;b&gt;old&lt;/b&gt;" in page


def test_a_page_of_runs_without_curves_says_so() -> None:
    page = comparison_page(compare_runs({"a": bare_run(), "b": bare_run()})).decode()
    assert "No figure: no run has logged it." in page
