"""The eleven verdicts: each is a function from a run's series to the answer to one question."""

from collections.abc import Callable

from tandem.observe.finding import Finding
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

__all__ = ["VERDICTS", "judge_run"]

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


def judge_run(series: Series) -> tuple[Finding, ...]:
    """The answers to all questions, in their order; an error of ours in one leaves the others as they are."""
    return tuple(_judged(number, judge, series) for number, judge in enumerate(VERDICTS, start=1))


def _judged(number: int, judge: Callable[[Series], Finding], series: Series) -> Finding:
    try:
        return judge(series)
    except Exception as error:  # noqa: BLE001 - ten answers are better than none
        key = judge.__module__.rpartition(".")[2]
        return Finding(
            number=number,
            key=key,
            question=key.replace("_", " ").capitalize(),
            verdict="cannot tell",
            confidence="none",
            answer=f"This could not be judged: {type(error).__name__}: {error}",
            evidence=(),
            advice="This is an error in Tandem: please report it with the run's log.",
            would_change="A version of Tandem in which it is mended.",
        )
