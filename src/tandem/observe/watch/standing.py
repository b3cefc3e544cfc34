"""Where a run stands, told from the columns of its series instead of record by record."""

import math
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from tandem.observe.series.columns import Evaluation as Evaluated
from tandem.observe.series.columns import HostSamples, Marked, Series
from tandem.observe.series.part import MOST_SPLITS
from tandem.observe.watch.hosts import HELD_SAMPLES as HELD_MOMENTS
from tandem.observe.watch.hosts import Moment, WatchedHost
from tandem.observe.watch.recent import STEPS, RecentStep
from tandem.observe.watch.state import HELD_SAMPLES, Evaluation, WatchState
from tandem.runlog.event import BatchSplit, TrainingStarted
from tandem.runlog.record import Record

__all__ = ["state_of"]

NANO = 1_000_000_000
_OF_RANK_0 = (None, 0)


def state_of(series: Series) -> WatchState:
    """The state that the records of a run would give one by one, however many there are.

    It differs where a series holds less, or knows better: times are on the head's clock; phases and samples are of
    single precision; what was done again after a restart is in no curve and in no count of skipped steps; of batches
    that were split only the first are kept; interfaces keep their places when a sampler starts anew.
    """
    state = WatchState(run=series.name)
    since = _replay(series, state)
    steps = series.steps
    redone_s = float(np.nan_to_num(series.redone_s))
    state.spent.training_s += redone_s
    state.spent.redone_s += redone_s
    for step in _last_steps(series, since):
        state.recent.add(step)
    made = ~steps.skipped
    state.curve.extend(steps.step[made], steps.loss[made], weights=np.maximum(steps.target_tokens[made], 1))
    timed = steps.duration_s > 0
    durations = steps.duration_s[timed]
    state.pace.extend(steps.step[timed], steps.target_tokens[timed] / durations, weights=durations)
    told = {each.step for each in state.evaluations}
    state.evaluations.clear()
    state.evaluations.extend(
        _evaluation(each) for each in series.evaluations if each.step in told or _is_measured(each)
    )
    state.samples = list(series.translations[:HELD_SAMPLES])
    state.hosts = {name: _host(name, held, series.begun_ns) for name, held in series.samples.items()}
    state.last_time_ns = max(state.last_time_ns, _last_word_ns(series))
    state.begun_ns, state.heard_ns = series.begun_ns, _time_ns(series.end_s, series.begun_ns)
    return state


def _replay(series: Series, state: WatchState) -> int:
    """Go through the rare records and the steps between them; returns the row that followed the last start."""
    since = done = splits = 0
    times = [mark.time_s for mark in series.marks]
    for mark, upto in zip(
        series.marks, np.searchsorted(series.steps.time_s, times, side="right").tolist(), strict=True
    ):
        _pass_steps(series, state, done, upto)
        done = upto
        state.apply(_record(mark, series.begun_ns))
        splits += isinstance(mark.event, BatchSplit)
        if isinstance(mark.event, TrainingStarted) and mark.rank in _OF_RANK_0:
            since = done
    _pass_steps(series, state, done, len(series.steps))
    if splits >= MOST_SPLITS:
        state.troubles.exceed(BatchSplit)
    return since


def _pass_steps(series: Series, state: WatchState, start: int, stop: int) -> None:
    if start == stop:
        return
    steps = series.steps
    state.move_on(int(steps.step[stop - 1]), epoch=int(steps.epoch[stop - 1]))
    state.spent.training_s += float(np.nansum(steps.duration_s[start:stop]))
    state.tokens += int(steps.target_tokens[start:stop].sum())
    skipped = np.flatnonzero(steps.skipped[start:stop])
    if len(skipped):
        row = start + int(skipped[-1])
        time_ns = _time_ns(float(steps.time_s[row]), series.begun_ns)
        state.troubles.skip(int(steps.step[row]), times=len(skipped), time_ns=time_ns)


def _time_ns(time_s: float, begun_ns: int) -> int:
    return begun_ns + round(time_s * NANO)


def _record(mark: Marked, begun_ns: int) -> Record:
    return Record(
        time_ns=_time_ns(mark.time_s, begun_ns),
        clock_s=0.0,
        rank=mark.rank,
        host=mark.host,
        sequence=0,
        event=mark.event,
    )


def _last_steps(series: Series, since: int) -> Iterator[RecentStep]:
    steps = series.steps
    for row in range(max(since, len(steps) - STEPS), len(steps)):
        phases = {name: float(held[0, row]) for name, held in series.ranks.phases.items()}
        yield RecentStep(
            step=int(steps.step[row]),
            loss=float(steps.loss[row]),
            nll=float(steps.nll[row]),
            learning_rate=float(steps.learning_rate[row]),
            gradient_norm=float(steps.gradient_norm[row]),
            skipped=bool(steps.skipped[row]),
            target_tokens=int(steps.target_tokens[row]),
            duration_s=float(steps.duration_s[row]),
            phases={name: seconds for name, seconds in phases.items() if not math.isnan(seconds)},
        )


def _is_measured(each: Evaluated) -> bool:
    """Scores of other tools are no evaluation."""
    return any(map(_known, (each.valid_loss, each.probe_loss, each.bleu)))


def _evaluation(each: Evaluated) -> Evaluation:
    return Evaluation(
        step=each.step,
        valid_loss=each.valid_loss if each.valid_tokens else _known(each.valid_loss),
        probe_loss=each.probe_loss if each.probe_tokens else _known(each.probe_loss),
        bleu=_known(each.bleu),
        chrf=_known(each.chrf),
        is_best_loss=each.is_best_loss,
        is_best_bleu=each.is_best_bleu,
        duration_s=_known(each.duration_s) or 0.0,
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _host(name: str, held: HostSamples, begun_ns: int) -> WatchedHost:
    host = WatchedHost(name=name, described=held.described)
    kept = [each.name for each in fields(Moment) if each.name != "time_ns"]
    rows = {column: getattr(held, column)[..., -HELD_MOMENTS:].T.tolist() for column in kept}
    for number, time_s in enumerate(held.time_s[-HELD_MOMENTS:].tolist()):
        values: dict[str, Any] = {column: _frozen(row[number]) for column, row in rows.items()}
        host.moments.append(Moment(time_ns=_time_ns(time_s, begun_ns), **values))
    rates = np.fmax(held.sent_bytes_per_s, held.received_bytes_per_s)
    if len(held.time_s):
        host.highest_bytes_per_s = np.nan_to_num(rates).max(axis=1).tolist()
    return host


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _last_word_ns(series: Series) -> int:
    """Also where the last record is one that has no mark, as a step or the loss on a set."""
    times = [*series.steps.time_s[-1:].tolist(), *(each.time_s for each in series.evaluations)]
    return _time_ns(max(times), series.begun_ns) if times else 0
