"""The eleven verdicts: each is a function from a run's series to the answer to one question."""

from collections.abc import Callable

from tandem.observe.agreement import reconcile
from tandem.observe.finding import Finding, Question
from tandem.observe.series.columns import Series
from tandem.observe.verdicts import (
    checkpoint_files,
    checkpoint_size,
    data,
    duration,
    gpus,
    network,
    overfitting,
    schedule,
    step_network,
    step_time,
    trained,
)

__all__ = ["QUESTIONS", "VERDICTS", "judge_run"]

VERDICTS: tuple[Callable[[Series], Finding], ...] = (
    duration.judge,
    trained.judge,
    overfitting.judge,
    gpus.judge,
    network.judge,
    schedule.judge,
    data.judge,
    checkpoint_files.judge,
    checkpoint_size.judge,
    step_time.judge,
    step_network.judge,
)

QUESTIONS: tuple[Question, ...] = (
    duration.QUESTION,
    trained.QUESTION,
    overfitting.QUESTION,
    gpus.QUESTION,
    network.QUESTION,
    schedule.QUESTION,
    data.QUESTION,
    checkpoint_files.QUESTION,
    checkpoint_size.QUESTION,
    step_time.QUESTION,
    step_network.QUESTION,
)
"""What each verdict answers, in the same order."""


def judge_run(series: Series) -> tuple[Finding, ...]:
    """The answers to all questions, in their order; an error of ours in one leaves the others as they are.

    Answers that contradict each other are lowered, and say why.
    """
    return reconcile(
        [_judged(question, judge, series) for question, judge in zip(QUESTIONS, VERDICTS, strict=True)]
    )


def _judged(question: Question, judge: Callable[[Series], Finding], series: Series) -> Finding:
    try:
        return judge(series)
    except Exception as error:  # noqa: BLE001 - ten answers are better than none
        return question.answer(
            "cannot tell",
            "none",
            f"This could not be judged: {type(error).__name__}: {error}",
            advice="This is an error in Tandem: please report it with the run's log.",
            figure="",
            would_change="A version of Tandem in which it is mended.",
        )
