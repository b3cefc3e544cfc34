import io

from rich.console import Console
from tests.unit.observe.report.told_run import build_report, build_run, finding

from tandem.observe.finding import Finding
from tandem.observe.report.terminal import render_explanation, render_report


def printed(*findings: Finding, width: int = 80) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False)
    render_report(build_report(build_run(), findings), console)
    return stream.getvalue()


def test_an_answer_has_verdict_confidence_sentence_numbers_and_advice() -> None:
    shown = printed(finding())
    for part in (
        " 5  Was the network the bottleneck?",
        "● yes  high confidence",
        "1.15 s of each 1.66 s step",
        "waiting for the network  1.15 s (1.10 s to 1.20 s)",
        "Do: Exchange fewer bytes",
        "Not measured: the price of an hour",
    ):
        assert part in shown


def test_all_fits_into_80_columns_and_a_file_has_no_colours() -> None:
    long = finding(answer="word " * 60, advice="more " * 50)
    shown = printed(long, finding(verdict="cannot tell", confidence="none"))
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown


def test_cannot_tell_claims_no_confidence() -> None:
    shown = printed(finding(verdict="cannot tell", confidence="none"))
    assert "? cannot tell\n" in shown.replace(" \n", "\n")
    assert "none confidence" not in shown


def test_text_from_outside_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in printed(finding(answer="\x1b[31mred [bold]x[/bold]"))


def test_what_is_wrong_with_the_log_is_said_first() -> None:
    shown = printed(finding())
    assert shown.index("40 steps were done twice") < shown.index("Was the network")


def test_where_there_is_more_is_said() -> None:
    facts = finding().evidence * 3
    shown = printed(finding(evidence=facts, section="network"), finding(8, section="data"))
    assert "and 4 more: --explain network" in shown
    assert shown.endswith("how it is judged: --explain QUESTION (network, data)\n")
    assert "and 4 more: --html" in printed(finding(evidence=facts))


def test_an_explanation_has_definition_evidence_and_section() -> None:
    stream = io.StringIO()
    asked = finding(about="What would vanish.", section="network", evidence=finding().evidence * 3)
    render_explanation(asked, Console(file=stream, width=80, highlight=False))
    shown = stream.getvalue()
    for part in (
        " 5  Was the network the bottleneck?",
        "● yes  high confidence",
        "    What is this?\n    What would vanish.\n",
        "    bytes a step: 365 MB\n        2·(n − 1)/n · gradients\n",
        "    What would change this\n    A step that is as long without exchange.\n",
        "    How it is judged\n    In each step, the rank that arrives last",
        "    - `yes`: 25 % of the step or more.\n    - `partly`: 10 % or more.\n",
    ):
        assert part in shown
    assert shown.count("bytes a step: ") == 3
    assert not [line for line in shown.splitlines() if len(line) > 80 or line != line.rstrip()]
