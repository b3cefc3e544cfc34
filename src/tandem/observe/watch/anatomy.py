"""What the time of the last steps went into, by the steps of all ranks and the split that the report uses."""

from collections import deque

import numpy as np

from tandem.observe.numbers import share
from tandem.observe.series.columns import PHASES, Numbers, Probes, RankSteps, Series, Short, Steps
from tandem.observe.split import split_steps
from tandem.observe.watch.recent import STEPS, Recent, RecentStep
from tandem.runlog.event import StepFinished, TrainingStarted

__all__ = ["Anatomy"]


class Anatomy:
    """A window over the last steps of the ranks other than rank 0, whose own steps are in `Recent`."""

    def __init__(self) -> None:
        self._ranks: dict[int, deque[StepFinished]] = {}

    def add(self, rank: int, step: StepFinished) -> None:
        """Take the next step of a rank other than 0."""
        self._ranks.setdefault(rank, deque(maxlen=2 * STEPS)).append(step)

    def clear(self) -> None:
        """Forget: the steps to come do not follow the ones before."""
        self._ranks.clear()

    def shares(self, recent: Recent, started: TrainingStarted | None) -> dict[str, float]:
        """Share of the last steps' time by what it went into.

        On several ranks `network` is the least wait for gradients over the ranks, `slowest rank` what they waited
        beyond it for the last one. Where not all ranks were heard the two cannot be told apart: they are `waiting`.
        """
        ranks = started.ranks if started is not None else 0
        if ranks <= 1:
            return recent.phases
        split = split_steps(self._series(recent, started, ranks=ranks)) if started is not None else None
        if split is None or not split.is_complete:
            return {"waiting" if name == "exchange" else name: part for name, part in recent.phases.items()}
        heard = split.is_heard
        whole = float(split.step_s[heard].sum())
        spent = {
            "data": split.data_s,
            "compute": split.compute_s,
            "standstill": split.stalled_s,
            "network": split.network_s,
            "slowest rank": split.straggler_s,
            "optimizer": split.optimizer_s,
            "other": split.other_s,
        }
        shares = {name: share(float(seconds[heard].sum()), whole) for name, seconds in spent.items()}
        return {name: part for name, part in shares.items() if part or name != "standstill"}

    def _series(self, recent: Recent, started: TrainingStarted, *, ranks: int) -> Series:
        """The last steps as a series of nothing else."""
        led = {step.step: step for step in recent}
        heard = {
            rank: {step.step: step for step in steps} for rank, steps in self._ranks.items() if rank < ranks
        }
        rows = [[({0: led} | heard).get(rank, {}).get(number) for number in led] for rank in range(ranks)]

        def column(name: str) -> Short:
            return np.array(
                [[step.phases.get(name, np.nan) if step else np.nan for step in row] for row in rows],
                np.float32,
            )

        durations = np.array([step.duration_s for step in led.values()])
        unknown = np.full((ranks, len(led)), np.nan, np.float32)
        return Series(
            name="",
            begun_ns=0,
            end_s=0.0,
            is_closed=False,
            ended="",
            imported=None,
            processes=(),
            starts=((0.0, started),),
            finished=None,
            planned=None,
            devices=(),
            steps=_steps(list(led.values()), durations),
            ranks=RankSteps(
                duration_s=unknown,
                phases={name: column(name) for name in PHASES},
                sent_bytes=unknown,
                hosts=("",) * ranks,
            ),
            redone_steps=0,
            redone_s=0.0,
            probes=Probes(
                step=np.zeros(0, np.int64),
                rank=np.zeros(0, np.int64),
                synchronised_s=np.zeros(0),
                unsynchronised_s=np.zeros(0),
                exchange_s=np.zeros(0),
            ),
            evaluations=(),
            checkpoints=(),
            translations=(),
            examined=(),
            links=(),
            samples={},
            marks=(),
            card=None,
            recipe={},
            damaged=0,
            dropped=0,
        )


def _steps(steps: list[StepFinished | RecentStep], durations: Numbers) -> Steps:
    counts = np.zeros(len(steps), np.int64)
    return Steps(
        step=np.array([step.step for step in steps], np.int64),
        time_s=np.cumsum(durations),
        epoch=counts,
        loss=np.zeros(len(steps)),
        nll=np.zeros(len(steps)),
        learning_rate=np.zeros(len(steps)),
        gradient_norm=np.zeros(len(steps)),
        skipped=counts.astype(np.bool_),
        target_tokens=counts,
        source_tokens=counts,
        pairs=counts,
        duration_s=durations,
    )
