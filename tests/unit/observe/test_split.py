from dataclasses import replace

import numpy as np
import pytest
from tests.unit.observe.verdicts.exchange_story import exchanged
from tests.unit.observe.verdicts.series_story import build_start

from tandem.observe.series.columns import Series
from tandem.observe.split import StepSplit, split_steps


def _split(series: Series) -> StepSplit:
    split = split_steps(series)
    assert split is not None
    return split


def _with_phase(series: Series, name: str, rank: int, steps: slice, extra_s: float) -> Series:
    column = series.ranks.phases[name].copy()
    column[rank, steps] += extra_s
    return replace(series, ranks=replace(series.ranks, phases={**series.ranks.phases, name: column}))


def test_the_parts_of_every_step_add_up_to_it() -> None:
    split = _split(exchanged(network_s=0.3, late_s=0.5, data_s=0.1))

    parts = split.data_s + split.compute_s + split.stalled_s + split.network_s + split.straggler_s
    assert parts + split.optimizer_s + split.other_s == pytest.approx(split.step_s, rel=1e-5)


def test_steps_made_by_fewer_ranks_count_as_theirs() -> None:
    series = exchanged(steps=400)
    phases = {name: column.copy() for name, column in series.ranks.phases.items()}
    for column in phases.values():
        column[1, 300:] = np.nan
    starts = ((5.0, build_start(ranks=2)), (300.0, build_start(ranks=1, step=300)))

    split = split_steps(replace(series, ranks=replace(series.ranks, phases=phases), starts=starts))

    assert split is not None
    assert split.ranks == 2
    assert split.heard == 1
    assert split.step.max() == 400
    assert set(split.world[split.step > 300]) == {1}
    assert split.network_s[split.step > 300].sum() == 0


def test_a_rank_that_stands_still_while_computing_is_neither_computing_nor_the_network() -> None:
    series = exchanged(network_s=0.02)
    stood = _with_phase(series, "backward", 0, slice(200, 201), 30.0)
    stood = _with_phase(stood, "exchange", 1, slice(200, 201), 30.0)

    split = _split(stood)

    at = split.step == 201
    assert split.stalled_s[at] == pytest.approx(29 / 2, rel=0.05)
    assert split.straggler_s[at] == pytest.approx(30 / 2, rel=0.05)
    assert split.network_s[at] < 0.1
    assert split.compute_s[at] < 2.1


def test_steps_that_no_rank_logged_stay_in_the_account() -> None:
    series = exchanged(steps=400)
    phases = {name: column.copy() for name, column in series.ranks.phases.items()}
    for column in phases.values():
        column[:, 300:] = np.nan

    split = _split(replace(series, ranks=replace(series.ranks, phases=phases)))

    assert split.unknown_s == pytest.approx(float(series.steps.duration_s[300:].sum()))
    assert split.heard == pytest.approx(0.75, abs=0.01)
    assert split.rank_share == pytest.approx(0.75, abs=0.01)
