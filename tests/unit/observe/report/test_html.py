import json
import math
import re
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest
from tests.unit.observe.report.told_run import bare_run, build_report, build_run, finding
from tests.unit.observe.story import Teller, step_event, training, write_log
from tests.unit.observe.verdicts.series_story import build_process

from tandem.observe.figures import FIGURES
from tandem.observe.figures.caption import CAPTIONS
from tandem.observe.figures.look import Figure
from tandem.observe.report.files import document_text
from tandem.observe.report.gather import Report, gather_report, read_report
from tandem.observe.report.html import report_page
from tandem.observe.series.columns import Series
from tandem.observe.verdicts import QUESTIONS
from tandem.observe.verdicts.sections import section_html


def page_of(report: Report) -> str:
    """The page without plotly and without the data of figures."""
    return re.sub(r"<script[^>]*>[^<]*(?:<(?!/script)[^<]*)*</script>", "", report_page(report).decode())


def boxes(page: str) -> list[str]:
    return re.findall(r'data-figure="([a-z_]+)-data"', page)


def test_answers_come_first_and_each_has_its_figure() -> None:
    page = page_of(build_report(findings=(finding(), finding(9, figure="checkpoint_parts"))))
    assert page.index('id="question_5"') < page.index('id="question_9"') < page.index("<h2>Curves</h2>")
    assert boxes(page)[:2] == ["exchange", "checkpoint_parts"]
    assert 'href="#question_5"' in page


def test_every_box_has_its_data_once() -> None:
    report = build_report(findings=(finding(), finding(7, figure="dropped"), finding(8, figure="gpus")))
    whole = report_page(report).decode()
    held = re.findall(r'<script type="application/json" id="([a-z_]+)-data"', whole)
    assert sorted(held) == sorted(set(held))
    assert set(boxes(whole)) == set(held) == set(report.figures)


def test_a_figure_says_its_numbers_to_who_cannot_see_it() -> None:
    page = page_of(build_report())
    assert re.search(r'aria-label="Losses\. training, with dropout: [0-9.]+ at', page)


def test_sections_of_the_page_are_all_there() -> None:
    page = page_of(build_report())
    for part in (
        "Evaluations",
        "Hosts on one time axis",
        "Translations after step 1,500",
        "Warum verkaufte sie das Fahrrad?",
        "checkpoints/step-00001500",
        "Training data",
        "Ranks and versions",
        "Links, as measured before training",
        "optim.warmup_steps",
        "What would change this: ",
        "2·(n − 1)/n · gradients",
    ):
        assert part in page


def test_what_was_not_measured_is_one_line() -> None:
    page = page_of(build_report(bare_run(), (finding(figure="gpus"),)))
    assert "No figure: No GPU was sampled." in page
    assert "No figure: The phases of the steps were not measured." in page
    assert "gpus" not in boxes(page)


def test_an_unknown_figure_is_left_out() -> None:
    assert boxes(page_of(build_report(findings=(finding(figure="no_such"),))))


def test_nothing_is_fetched_and_links_stay_inside() -> None:
    page = page_of(build_report())
    assert set(re.findall(r'(?:src|href)="(.)', page)) == {"#"}
    assert not re.search(r"url\(|@import|https?:", page)


def test_text_from_outside_stays_text() -> None:
    evil = "</script><script>alert(1)</script>"
    series = build_run(name=evil, recipe={evil: evil})
    page = page_of(build_report(series, (finding(answer=evil),)))
    assert "alert(1)" in page
    assert "<script>alert" not in report_page(build_report(series, (finding(answer=evil),))).decode()


def test_the_same_run_gives_the_same_bytes() -> None:
    assert report_page(build_report()) == report_page(build_report())


def test_data_of_figures_is_strict_json() -> None:
    whole = report_page(build_report()).decode()
    for held in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', whole, flags=re.DOTALL):
        json.loads(held, parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name)))


def test_text_that_is_no_unicode_is_written_out() -> None:
    evil = "a\udcff"
    process = replace(build_process(), command=("tandem", evil), host=evil)
    series = build_run(
        name=evil, recipe={evil: evil}, processes=(process,), samples={evil: build_run().samples["alpha"]}
    )
    page = report_page(gather_report(series)).decode()
    assert "a\\udcff" in page


def test_a_figure_that_cannot_be_drawn_leaves_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_series: Series) -> None:
        raise ZeroDivisionError("planted")

    failing = {**FIGURES, "losses": fail, "lengths": fail}
    monkeypatch.setattr("tandem.observe.report.gather.FIGURES", failing)
    report = gather_report(build_run())
    page = page_of(report)
    assert len(report.findings) == 11
    assert set(report.figures) == set(FIGURES) - {"losses", "lengths"}
    assert "No figure: it could not be drawn (ZeroDivisionError: planted)." in page
    assert "anatomy" in boxes(page)


def test_figures_hold_no_infinity(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(_series: Series) -> Figure:
        return {"data": [{"y": [1.0, math.inf, math.nan]}], "layout": {}}

    monkeypatch.setattr("tandem.observe.report.gather.FIGURES", {"losses": endless})
    assert gather_report(bare_run()).figures["losses"]["data"] == [{"y": [1.0, None, None]}]


def test_a_step_without_end_spoils_neither_page_nor_json(tmp_path: Path) -> None:
    teller = Teller()
    records = list(training(teller, steps=30, every=10))
    endless = replace(step_event(31), duration_s=math.inf)
    write_log(tmp_path, [*records, teller.tell(endless, after_s=1.0)])
    report = read_report(tmp_path)
    assert not report.undrawn
    assert report_page(report)
    assert json.loads(document_text(report), parse_constant=pytest.fail)["run"]["steps"] == 31


def test_every_question_says_what_it_means_and_how_it_is_judged() -> None:
    page = page_of(gather_report(build_run()))
    for question in QUESTIONS:
        answer = page.partition(f'<section id="{question.key}"')[2].partition("</section>")[0]
        assert f"<summary>What is this?</summary><p>{escape(question.about)} <a" in answer
        assert f'<details id="section-{question.key}"' in answer
        heading = f"<h3>{question.number}. {escape(question.question)} "
        assert heading in answer
        assert section_html(question.key) in answer.partition(heading)[2]


def test_the_columns_of_the_evaluations_are_explained() -> None:
    page = page_of(gather_report(build_run()))
    table = page.partition("<h2>Evaluations</h2>")[2].partition("</section>")[0]
    explained = re.findall("<li><b>(.*?)</b>: ", table.partition("</details>")[0])
    assert explained == ["valid loss", "probe loss", "BLEU", "chrF"]


def test_every_link_has_its_place() -> None:
    page = page_of(gather_report(build_run()))
    named = re.findall(r'id="([^"]*)"', page)
    assert len(named) == len(set(named))
    assert set(re.findall(r'href="#([^"]*)"', page)) <= set(named)


def test_every_figure_leads_to_what_is_concluded_from_it() -> None:
    page = page_of(gather_report(build_run()))
    _, *boxes = page.split('data-figure="')
    shown = {box.partition("-data")[0]: box.partition("</figure>")[0] for box in boxes}
    assert shown.keys() == FIGURES.keys()
    for name, box in shown.items():
        led = re.findall(r'href="#section-([a-z_]+)"', box)
        assert led == [section for section in [CAPTIONS[name].section] if section]


def test_a_figure_leads_nowhere_where_nothing_is_said_of_it() -> None:
    assert "What is concluded from it" not in page_of(build_report())
