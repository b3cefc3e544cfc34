from tandem.observe.confidence import Grounds, Kind
from tandem.observe.finding import Evidence, Question

QUESTION = Question(
    number=5,
    key="network",
    question="Was it?",
    about="What would vanish.",
    would_change="Probes.",
    figure="exchange",
)


def test_an_answer_brings_what_its_question_means() -> None:
    seen = Evidence(name="wait", value=1.0, unit="s", definition="a step")
    found = QUESTION.answer(
        "yes", Grounds(), "Yes: it was.", evidence=(seen,), advice="Another.", missing=("probes",)
    )
    assert (found.number, found.key, found.question) == (5, "network", "Was it?")
    assert (found.verdict, found.confidence, found.answer) == ("yes", "high", "Yes: it was.")
    assert (found.evidence, found.advice, found.missing) == ((seen,), "Another.", ("probes",))
    assert (found.about, found.section) == ("What would vanish.", "network")
    assert (found.figure, found.would_change) == ("exchange", "Probes.")


def test_an_answer_may_have_no_figure_and_say_itself_what_would_change_it() -> None:
    found = QUESTION.answer("no", Grounds(chance=0.7), "No.", figure="", would_change="Another rank.")
    assert (found.figure, found.would_change) == ("", "Another rank.")


def test_who_cannot_tell_claims_no_confidence() -> None:
    found = QUESTION.cannot_tell("Cannot tell: nothing was logged.", missing=("phases",), figure="step_bytes")
    assert (found.verdict, found.confidence) == ("cannot tell", "none")
    assert (found.missing, found.figure, found.would_change) == (("phases",), "step_bytes", "Probes.")


def test_the_confidence_follows_from_the_grounds_and_the_doubt_says_why() -> None:
    found = QUESTION.answer("yes", Grounds(lacks=("probes",)), "Yes.")
    assert (found.confidence, found.doubt) == ("medium", "not measured: probes")


def test_grounds_that_allow_no_answer_give_none() -> None:
    found = QUESTION.answer("yes", Grounds(chance=0.7, kind=Kind.ASSUMED), "Yes.")
    assert (found.verdict, found.confidence, found.doubt) == ("cannot tell", "none", "")
