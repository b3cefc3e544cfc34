"""An answer is right, declined, wrong or confidently wrong, and the table counts them where they belong."""

from pathlib import Path

import pytest
from benchmarks.truth.labels import Label, Value
from benchmarks.truth.score import Row, confusion_table, score_run, tally
from benchmarks.truth.table import write_table

from tandem.observe.finding import Confidence, Evidence, Finding, Verdict

BEGIN, END = "<!-- truth table: made by benchmarks/truth/table.py -->", "<!-- end of the truth table -->"


def finding(verdict: Verdict, confidence: Confidence, value: float = 1.0) -> Finding:
    return Finding(
        number=5,
        key="network",
        question="",
        verdict=verdict,
        confidence=confidence,
        answer="",
        evidence=(Evidence(name="share", value=value, definition=""),),
        advice="",
        would_change="",
    )


def scored(label: Label, found: Finding) -> Row:
    (row,) = score_run("run", "simulated", {"network": label}, [found])
    return row


@pytest.mark.parametrize(
    ("verdict", "confidence", "outcome"),
    [
        ("yes", "low", "right"),
        ("partly", "high", "right"),
        ("cannot tell", "none", "declined"),
        ("no", "low", "wrong"),
        ("no", "medium", "confidently wrong"),
        ("no", "high", "confidently wrong"),
    ],
)
def test_a_verdict_is_held_against_its_label(verdict: Verdict, confidence: Confidence, outcome: str) -> None:
    label = Label(verdicts=frozenset({"yes", "partly"}))
    assert scored(label, finding(verdict, confidence)).outcome == outcome


def test_a_right_verdict_with_a_wrong_or_missing_number_is_wrong() -> None:
    def labelled(name: str) -> Label:
        return Label(verdicts=frozenset({"yes"}), values=(Value(name=name, truth=1.0, within=0.1),))

    assert scored(labelled("share"), finding("yes", "high", 1.05)).outcome == "right"
    assert scored(labelled("share"), finding("yes", "high", 1.2)).outcome == "confidently wrong"
    assert scored(labelled("share"), finding("yes", "low", 1.2)).outcome == "wrong"
    assert scored(labelled("size"), finding("yes", "low")).reason == "no number is called size"


def test_questions_without_a_label_are_not_asked() -> None:
    assert score_run("run", "simulated", {}, [finding("yes", "high")]) == []


def test_the_table_has_a_line_for_each_right_answer() -> None:
    label = Label(verdicts=frozenset({"yes"}))
    rows = [scored(label, finding(verdict, "low")) for verdict in ("yes", "yes", "no")]
    assert "| network | yes | 2 |  | 1 |  |  | 2 of 3 | 0 |" in confusion_table(rows).splitlines()
    assert tally(rows) == {"right": 2, "declined": 0, "wrong": 1, "confidently wrong": 0}


def test_a_new_table_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_table(page, "new")
    assert page.read_text() == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"


def test_a_page_without_a_place_for_the_table_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing here\n")
    with pytest.raises(SystemExit, match="put the two markers back"):
        write_table(page, "new")
    assert page.read_text() == "nothing here\n"
