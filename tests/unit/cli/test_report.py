import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.observe.story import Teller, finished, training, write_log
from tests.unit.observe.verdicts.series_story import build_process
from typer.testing import CliRunner

from tandem.cli.app import app
from tandem.cli.report import _completed
from tandem.errors import TandemError


@pytest.fixture
def run(tmp_path: Path) -> Path:
    teller = Teller()
    write_log(tmp_path / "run", [*training(teller, steps=30, every=10), teller.tell(finished(30))])
    return tmp_path / "run"


def told(*words: object) -> str:
    result = CliRunner().invoke(app, ["report", *map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_the_terminal_shows_eleven_answers(run: Path) -> None:
    shown = told(run)
    assert [line[:4] for line in shown.splitlines() if line[:2].strip().isdigit()] == [
        f"{number:>2}  " for number in range(1, 12)
    ]


def test_options_may_stand_alone_or_name_a_file(run: Path, tmp_path: Path) -> None:
    told(run, "--html", "--json", tmp_path / "r.json")
    assert (run / "report" / "report.html").is_file()
    assert len(json.loads((tmp_path / "r.json").read_text())["findings"]) == 11


def test_json_goes_to_the_terminal_alone(run: Path) -> None:
    assert json.loads(told(run, "--json"))["run"]["steps"] == 30
    assert json.loads(told(run, "--json", "-"))["version"] == 1


def test_markdown_goes_to_the_terminal(run: Path) -> None:
    assert "\n## 11. " in told(run, "--markdown")


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["R", "--html"], ["R", "--html="]),
        (["R", "--html", "f", "--json"], ["R", "--html", "f", "--json="]),
        (["R", "--json", "-"], ["R", "--json", "-"]),
        (["--markdown", "--json=x", "R"], ["--markdown=", "--json=x", "R"]),
    ],
)
def test_an_option_that_stands_alone_gets_an_empty_value(words: list[str], completed: list[str]) -> None:
    assert _completed(words) == completed


def test_no_such_run_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="There is no run .*nowhere: check the path"):
        told(tmp_path / "nowhere")


def test_a_folder_without_a_log_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="There is no run log in"):
        told(tmp_path)


def test_a_place_that_cannot_be_written_is_one_sentence(run: Path, tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="Cannot write .*; name a file in a folder"):
        told(run, "--html", tmp_path / "no" / "such" / "page.html")


def test_a_page_goes_into_a_pipe(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert told(run, "--html", "-").startswith("<!doctype html>")
    assert not (tmp_path / "-").exists()


def test_the_run_may_come_after_an_option_that_stands_alone(run: Path) -> None:
    told("--html", run)
    assert (run / "report" / "report.html").is_file()
    assert json.loads(told("--json", run))["version"] == 1


def test_a_file_is_not_taken_for_the_run(run: Path, tmp_path: Path) -> None:
    told("--json", run, "--html", tmp_path / "page.html")
    assert (tmp_path / "page.html").is_file()
    missing = CliRunner().invoke(app, ["report", "--html", str(tmp_path / "page.html")])
    assert missing.exit_code == 2


def test_text_that_is_no_unicode_is_shown(tmp_path: Path) -> None:
    teller = Teller()
    process = replace(build_process(), run="first\udcff", command=("tandem", "a\udcff"))
    write_log(tmp_path / "run", [teller.tell(process), *training(teller, steps=30, every=10)])
    assert "first\\udcff" in told(tmp_path / "run")
    document = json.loads(told(tmp_path / "run", "--json"))
    assert document["processes"][0]["command"][1] == "a\\udcff"
    told(tmp_path / "run", "--json", tmp_path / "r.json", "--markdown", tmp_path / "r.md", "--html")


def test_one_question_is_explained(run: Path, tmp_path: Path) -> None:
    shown = told(run, "--explain", "step_time")
    assert shown.startswith("10  How long is a step?\n")
    assert "What is this?" in shown
    assert "How it is judged" in shown
    assert told(run, "--explain", "step_time", "--json", tmp_path / "r.json") == shown
    assert (tmp_path / "r.json").is_file()


def test_a_question_has_a_number_too(run: Path) -> None:
    assert told(run, "--explain", "10") == told(run, "--explain", "step_time")


def test_without_a_run_a_question_is_only_defined() -> None:
    shown = told("--explain", "network")
    assert "What is this?" in shown
    assert "How it is judged" in shown
    assert "What it rests on" not in shown
    assert shown == told("--explain", "5")


@pytest.mark.parametrize("words", [[], ["--explain", "network", "--json"]])
def test_without_a_run_there_is_nothing_to_report(words: list[str]) -> None:
    result = CliRunner().invoke(app, ["report", *words])
    assert result.exit_code == 2
    assert "Name the folder of a run." in result.stderr


def test_a_question_is_not_taken_for_the_run(run: Path) -> None:
    assert "What is this?" in told("--html", run, "--explain", "network")
    assert (run / "report" / "report.html").is_file()


def test_an_unknown_question_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="There is no question 'speed': choose one of duration, "):
        told(tmp_path / "not-even-looked-for", "--explain", "speed")
