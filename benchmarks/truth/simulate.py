"""Plays a scenario through: writes the run folder that it would have left, and keeps what was true."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml
from benchmarks.truth.beginnings import tell_beginning, tell_start
from benchmarks.truth.curves import judge_learning, learning_rate, train_loss
from benchmarks.truth.journal import Journal
from benchmarks.truth.milestones import tell_checkpoint, tell_end, tell_evaluation, tell_probe
from benchmarks.truth.scenario import Scenario
from benchmarks.truth.surroundings import build_recipe, checkpoint_files
from benchmarks.truth.telling import Telling
from benchmarks.truth.timing import Timing, simulate_time
from benchmarks.truth.watched import write_samples
from numpy.typing import NDArray

from tandem.runlog.event import StepFinished

__all__ = ["Truth", "simulate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What a simulated run was in fact, by the simulator's own books."""

    wall_s: float
    step_s: float
    """Median of rank 0 over the steps that stand, those right after a start left out."""
    network_share: float
    """Of the step, that would vanish if sending took no time."""
    compute_share: float
    """Of the step, in which a device does forward, backward or the optimiser's work, on the mean rank."""
    flops_share: float
    """Of the device's peak, that the model's own work makes."""
    straggler_share: float
    data_share: float
    checkpoints: int
    checkpoint_bytes: int
    evaluations: int
    redone_steps: int
    is_reader_hidden: bool
    """Whether nobody waits for data, but would as soon as the network were faster: no log can show that."""
    lost_s: float
    """To restarts."""


def simulate(scenario: Scenario, run: Path) -> Truth:
    """Write the run folder; it must not be there yet."""
    numbers, starts = _order(scenario)
    timing, infinite = simulate_time(scenario, len(numbers), seed=scenario.seed)
    dice = np.random.default_rng([scenario.seed, 2])
    offset = scenario.hardware.clock_offset_s
    journal = Journal(run, offset_s=lambda host: offset if host == "node2" else 0.0)
    (run / "recipe.yaml").write_text(yaml.safe_dump(build_recipe(scenario), sort_keys=False))
    telling = Telling(
        scenario=scenario,
        journal=journal,
        timing=timing,
        judged=judge_learning(scenario, dice),
        numbers=numbers,
    )
    end_s = _tell(telling, starts, dice)
    journal.close()
    standing = np.array(sorted({step: at for at, step in enumerate(numbers)}.values()))
    return _truth(telling, infinite, standing, wall_s=end_s, starts=starts)


def _order(scenario: Scenario) -> tuple[NDArray[np.int64], dict[int, int]]:
    """The steps in the order in which they were done, and for each row that follows a start, the step gone on from."""
    plan = scenario.plan
    rows: list[int] = []
    starts = {0: 0}
    begun = 0
    for killed in (*plan.killed_at, plan.steps):
        rows += range(begun + 1, killed + 1)
        begun = killed // plan.save_every * plan.save_every if plan.save_every else 0
        if killed in plan.killed_at:
            starts[len(rows)] = begun
    return np.array(rows), starts


def _tell(telling: Telling, starts: dict[int, int], dice: np.random.Generator) -> float:
    """Write everything in order; returns when the last record was written."""
    scenario = telling.scenario
    tell_beginning(telling)
    steps = telling.numbers.astype(float)
    lines = _Lines(
        telling, loss=train_loss(scenario, steps, dice), rate=learning_rate(scenario, steps), dice=dice
    )
    pauses: list[tuple[float, float]] = []
    ends = np.zeros(len(steps))
    probes = {probe.at: probe for probe in telling.timing.probes}
    evaluated = {int(step): number for number, step in enumerate(telling.judged.step)}
    rested: dict[int, float] = {}
    begun_s = 0.0
    for at, step in enumerate(telling.numbers.tolist()):
        if at in starts:
            stood_s = rested.get(starts[at], begun_s)
            begun_s = tell_start(telling, at, starts)
            telling.lost_s += begun_s - stood_s if at else 0.0
        if at in probes:
            # Besides the step there is one more pass, which belongs to no step.
            telling.shift_s += float(probes[at].unsynchronised_s.max())
        ends[at] = lines.write(at, is_first=at in starts)
        if at in probes:
            tell_probe(telling, step, probes[at], at_s=ends[at])
        before_s = telling.shift_s
        if step in evaluated:
            tell_evaluation(telling, evaluated[step], at_s=ends[at] + 0.01)
        if scenario.plan.save_every and step % scenario.plan.save_every == 0:
            tell_checkpoint(telling, step, at_s=ends[at] + telling.shift_s - before_s + 0.02)
        rested[step] = ends[at] + telling.shift_s - before_s
        if telling.shift_s > before_s:
            pauses.append((ends[at], ends[at] + telling.shift_s - before_s))
    end_s = tell_end(telling, float(ends[-1]) + telling.shift_s - before_s)
    if scenario.seen.samples:
        write_samples(
            scenario, telling.journal, telling.timing, ends=ends, pauses=pauses, end_s=end_s, dice=dice
        )
    return end_s


class _Lines:
    """Writes the steps of all ranks."""

    def __init__(
        self,
        telling: Telling,
        *,
        loss: NDArray[np.float64],
        rate: NDArray[np.float64],
        dice: np.random.Generator,
    ) -> None:
        self._telling = telling
        timing = telling.timing
        self._loss, self._rate = loss.tolist(), rate.tolist()
        self._norm = (np.exp(dice.normal(-0.7, 0.25, len(loss)))).tolist()
        self._tokens = dice.integers(
            int(telling.scenario.tokens * 0.985), telling.scenario.tokens, len(loss)
        ).tolist()
        self._phases = np.round(
            np.stack(
                [
                    timing.data_s,
                    timing.forward_s,
                    timing.backward_s,
                    timing.exchange_s,
                    timing.optimizer_s,
                    timing.other_s,
                ],
                axis=2,
            ),
            6,
        ).tolist()
        self._ends = timing.end_s.tolist()

    def write(self, at: int, *, is_first: bool) -> float:
        """Write one step of every rank; returns when the last of them ended."""
        telling = self._telling
        scenario = telling.scenario
        late = scenario.plan.first_step_s if is_first else 0.0
        telling.shift_s += late
        ends = [end + telling.shift_s for end in self._ends[at]]
        step, ranks = int(telling.numbers[at]), scenario.hardware.ranks
        loss = self._loss[at]
        is_skipped = math.isnan(loss)
        for rank in range(min(ranks, scenario.seen.ranks)):
            data, forward, backward, exchange, optimizer, other = self._phases[at][rank]
            event = StepFinished(
                step=step,
                epoch=step * scenario.tokens // (scenario.pairs * 30),
                loss=loss,
                nll=loss - 0.55,
                learning_rate=self._rate[at],
                gradient_norm=math.nan if is_skipped else self._norm[at],
                loss_scale=1.0,
                skipped=is_skipped,
                target_tokens=self._tokens[at],
                source_tokens=int(self._tokens[at] * 0.93),
                pairs=self._tokens[at] // 30,
                batches=ranks * scenario.work.batches,
                duration_s=round(data + forward + backward + exchange + optimizer + other + late, 6),
                phases={
                    "data": data,
                    "forward": round(forward + late, 6),
                    "backward": backward,
                    "exchange": exchange,
                    "optimizer": optimizer,
                    "other": other,
                },
                split=0,
                sent_bytes=scenario.gradient_bytes if ranks > 1 else 0,
            )
            telling.journal.rank(rank, event, at_s=ends[rank], host=telling.host(rank))
        return float(max(ends))


def _truth(
    telling: Telling,
    infinite: Timing,
    standing: NDArray[np.int64],
    *,
    wall_s: float,
    starts: dict[int, int],
) -> Truth:
    timing, work = telling.timing, telling.scenario.work
    steady = np.array([at for at in standing if at not in starts])
    step_s = timing.duration_s[steady]
    computing = timing.pure_s[steady] + timing.optimizer_s[steady]
    slowest = (timing.data_s + timing.pure_s)[steady]
    return Truth(
        wall_s=wall_s,
        step_s=float(np.median(step_s[:, 0])),
        network_share=1 - float(infinite.duration_s[steady].mean() / step_s.mean()),
        compute_share=float(computing.mean() / step_s.mean()),
        flops_share=work.flops_share * work.compute_s / float(step_s.mean()),
        straggler_share=float((slowest.max(axis=1) - slowest.mean(axis=1)).mean() / step_s.mean()),
        data_share=float(timing.data_s[steady].mean() / step_s.mean()),
        checkpoints=len(telling.saved),
        checkpoint_bytes=sum(checkpoint_files(telling.scenario).values()),
        evaluations=len(telling.judged.step),
        redone_steps=len(telling.numbers) - len(standing),
        is_reader_hidden=bool(
            timing.data_s[steady].mean() < 0.01 * step_s.mean()
            and infinite.data_s[steady].mean() > 0.02 * step_s.mean()
        ),
        lost_s=telling.lost_s,
    )
