from tests.unit.observe.report.told_run import build_report, finding

from tandem.observe.report.markdown import report_markdown


def test_an_answer_is_pasted_with_its_evidence_and_definitions() -> None:
    text = report_markdown(build_report())
    assert "## 5. Was the network the bottleneck?" in text
    assert "**yes** (high confidence): Yes: 1.15 s of each" in text
    assert "| of the step | 69.3 % | waiting / step |" in text
    assert "| 1,500 | 1.7270 | 1.6470 | 27.6 (27.0 to 28.2) | 51.0 | loss, BLEU |" in text


def test_text_from_outside_stays_text() -> None:
    text = report_markdown(build_report(findings=(finding(answer="a|b <script> *c*"),)))
    assert r"a\|b \<script\> \*c\*" in text


def test_every_row_of_a_table_has_as_many_cells() -> None:
    rows = [line for line in report_markdown(build_report()).splitlines() if line.startswith("| ")]
    assert len(rows) > 10
    assert all(row.endswith(" |") for row in rows)
