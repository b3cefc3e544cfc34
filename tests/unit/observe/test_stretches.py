from dataclasses import replace

import numpy as np
from tests.unit.observe.verdicts.exchange_story import exchanged, imported
from tests.unit.observe.verdicts.series_story import build_start

from tandem.observe.series.columns import Marked, Series
from tandem.observe.stretches import host_count, stretches_of
from tandem.runlog.event import RoundStarted


def _round(*hosts: str, number: int = 1) -> RoundStarted:
    return RoundStarted(
        round=number, hosts=hosts, workers=dict.fromkeys(hosts, 1), address="10.0.0.1", interfaces=("eth0",)
    )


def test_each_step_has_the_ranks_and_hosts_of_the_start_that_made_it() -> None:
    series = exchanged(steps=400)
    later_s = float(series.steps.time_s[299]) + 1.0
    series = replace(
        series,
        starts=((5.0, build_start(ranks=2)), (later_s, build_start(ranks=1, step=300))),
        marks=tuple(
            Marked(time_s=time_s, rank=None, host="a", event=event)
            for time_s, event in ((1.0, _round("a", "b")), (later_s - 0.5, _round("a", number=2)))
        ),
        ranks=replace(series.ranks, hosts=("alpha", "")),
    )

    stretches = stretches_of(series)

    assert set(stretches.start[:300]) == {0}
    assert (set(stretches.ranks[:300]), set(stretches.hosts[:300])) == ({2}, {2})
    assert set(stretches.start[300:]) == {1}
    assert (set(stretches.ranks[300:]), set(stretches.hosts[300:])) == ({1}, {1})


def _only_rank_0(series: Series) -> Series:
    """As the log is on a host with a disk of its own."""
    phases = {name: column.copy() for name, column in series.ranks.phases.items()}
    for column in phases.values():
        column[1:] = np.nan
    hosts = (series.ranks.hosts[0], *("" for _ in series.ranks.hosts[1:]))
    return replace(series, ranks=replace(series.ranks, phases=phases, hosts=hosts))


def test_hosts_are_counted_by_name_or_by_round() -> None:
    series = exchanged(hosts=("same", "same"))
    mark = Marked(time_s=0.0, rank=None, host="a", event=_round("a", "b"))

    assert host_count(series) == 1
    assert host_count(replace(series, marks=(mark,))) == 2
    assert host_count(imported(hosts=3)) == 3
    assert host_count(imported()) == 0


def test_a_host_is_not_counted_as_the_only_one_where_ranks_left_no_log() -> None:
    series = _only_rank_0(exchanged())

    assert host_count(series) == 0
    assert host_count(replace(series, starts=())) == 0
    assert host_count(replace(series, ranks=replace(series.ranks, hosts=("alpha",)))) == 0


def test_checkpoints_on_two_disks_prove_two_hosts() -> None:
    start = build_start(ranks=2, checkpoint_hosts=("alpha", "beta"))

    assert host_count(replace(_only_rank_0(exchanged()), starts=((5.0, start),))) == 2


def test_a_round_that_has_all_ranks_on_one_host_proves_it() -> None:
    round_ = RoundStarted(round=1, hosts=("a",), workers={"a": 2}, address="10.0.0.1", interfaces=("eth0",))
    mark = Marked(time_s=0.0, rank=None, host="a", event=round_)
    series = _only_rank_0(exchanged())

    assert host_count(replace(series, marks=(mark,))) == 1
    assert host_count(replace(series, marks=(replace(mark, event=replace(round_, workers={"a": 1})),))) == 0
