from tandem.observe.confidence import Grounds, Kind
from tandem.observe.finding import Question
from tandem.observe.verdicts.draft import Draft, finish_draft

QUESTION = Question(number=2, key="trained", question="Is it?", about="It.", would_change="More.")


def test_a_draft_is_as_sure_as_its_grounds_and_says_what_they_lack() -> None:
    draft = Draft(
        verdict="yes", grounds=Grounds(lacks=("BLEU",)), answer="Yes: it is.", missing=("BLEU", "chrF")
    )
    finding = finish_draft(QUESTION, draft, evidence=(), beside=" Or so.")
    assert (finding.verdict, finding.confidence, finding.answer) == ("yes", "medium", "Yes: it is. Or so.")
    assert finding.missing == ("BLEU", "chrF")


def test_a_draft_whose_grounds_allow_no_answer_cannot_tell() -> None:
    draft = Draft(verdict="yes", grounds=Grounds(chance=0.7, kind=Kind.ASSUMED), answer="Yes: it is so.")
    finding = finish_draft(QUESTION, draft, evidence=())
    assert (finding.verdict, finding.confidence, finding.answer) == (
        "cannot tell",
        "none",
        "Cannot tell: it is so.",
    )


def test_a_draft_without_grounds_keeps_its_words() -> None:
    finding = finish_draft(QUESTION, Draft(answer="Cannot tell: nobody looked.", advice="Look."), evidence=())
    assert (finding.answer, finding.advice) == ("Cannot tell: nobody looked.", "Look.")
