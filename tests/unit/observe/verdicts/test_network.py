from dataclasses import fields, replace
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.unit.observe.verdicts.exchange_story import carried, exchanged, imported, link, starved

from tandem.observe.series.columns import Series, Steps
from tandem.observe.verdicts.gpus import judge as judge_gpus
from tandem.observe.verdicts.network import judge

Rows: TypeAlias = NDArray[np.float32]


@pytest.mark.parametrize(
    ("network_s", "slowing_s", "verdict"), [(0.02, 0.0, "no"), (0.15, 0.05, "partly"), (1.0, 0.1, "yes")]
)
def test_the_share_that_a_perfect_network_saves_decides(
    network_s: float, slowing_s: float, verdict: str
) -> None:
    found = judge(exchanged(network_s=network_s, slowing_s=slowing_s))

    assert (found.verdict, found.confidence) == (verdict, "high")


def test_slowing_that_no_wait_shows_makes_it_the_network() -> None:
    found = judge(exchanged(network_s=0.02, slowing_s=0.5))

    assert found.verdict == "yes"


def test_near_a_border_confidence_is_low() -> None:
    assert judge(exchanged(network_s=0.347)).confidence == "low"


def test_a_lower_bound_over_the_border_is_proof_even_without_probes() -> None:
    found = judge(exchanged(network_s=1.0, probed=False))

    assert (found.verdict, found.confidence) == ("yes", "medium")
    assert "at least" in found.answer
    assert any("probes" in each for each in found.missing)


def test_a_small_wait_without_probes_is_no_answer_to_rely_on() -> None:
    found = judge(exchanged(network_s=0.02, probed=False))

    assert (found.verdict, found.confidence) == ("no", "low")


@pytest.mark.parametrize("network_s", [0.06, 0.15])
def test_a_lower_bound_says_nothing_where_the_rest_may_be_above_the_next_border(network_s: float) -> None:
    found = judge(exchanged(network_s=network_s, probed=False))

    assert (found.verdict, found.confidence) == ("cannot tell", "none")
    assert "slows the computing beside it was not measured" in found.answer


def test_a_straggler_is_named_and_is_not_the_network() -> None:
    found = judge(exchanged(network_s=0.02, late_s=0.8))

    assert (found.verdict, found.confidence) == ("no", "high")
    assert "waiting for the slowest rank." in found.answer


def test_slow_data_are_named_and_are_not_the_network() -> None:
    found = judge(exchanged(network_s=0.02, data_s=1.0))

    assert (found.verdict, found.confidence) == ("no", "high")
    assert "waiting for data" in found.answer
    assert "whose data come late" in judge(exchanged(network_s=0.02, late_data_s=1.0)).answer


def test_a_reader_that_sets_the_pace_hides_a_slow_network() -> None:
    found = judge(starved())

    assert (found.verdict, found.confidence) == ("no", "high")
    assert "the reader of data sets the pace" in found.answer
    assert "reader first" in found.advice
    without = next(each.value for each in found.evidence if each.name == "step without network")
    assert without == next(each.value for each in found.evidence if each.name == "step")


@pytest.mark.parametrize(
    ("batch_s", "spread", "ahead", "steps", "verdict", "says"),
    [
        (1.9, 0.3, 4, 2000, "no", "the reader of data sets the pace"),
        (1.5, 0.4, 1, 2000, "partly", "which the reader of data needs"),
        (1.7, 0.6, 2, 60, "no", "which the reader of data needs if it works ahead"),
        (1.62, 0.3, 4, 2000, "yes", "But data came late"),
    ],
    ids=["it sets the pace", "it would soon", "it would soon as far as few steps tell", "it may"],
)
def test_readers_close_behind_bound_what_a_faster_network_saves_but_not_for_sure(
    batch_s: float, spread: float, ahead: int, steps: int, verdict: str, says: str
) -> None:
    series = exchanged(network_s=0.6, data_s=0.0, steps=steps)
    phases = {name: column.copy() for name, column in series.ranks.phases.items()}
    random = np.random.default_rng(11)
    phases["data"], phases["exchange"] = _read_ahead(
        phases["forward"] + phases["backward"],
        batch_s=np.asarray(batch_s * (1 + spread * random.standard_normal((2, steps))), np.float32),
        network_s=np.asarray(0.6 * (1 + 0.3 * random.standard_normal(steps)), np.float32),
        ahead=ahead,
    )
    found = judge(replace(series, ranks=replace(series.ranks, phases=phases)))

    assert (found.verdict, found.confidence) == (verdict, "low")
    assert says in found.answer
    assert "reader first" in found.advice or verdict != "no"


THROUGHOUT = (20, 60, *range(180, 800, 100))
ORDER = ("none", "low", "medium", "high")


def _stalling(series: Series, *, phase: str, rank: int | None, every: int, stall_s: float) -> Series:
    """Now and then the exchange, or what one rank does before it, takes much longer."""
    phases = {name: column.copy() for name, column in series.ranks.phases.items()}
    stalls = slice(50, None, every)
    if rank is None:
        phases[phase][:, stalls] += stall_s
    else:
        phases[phase][rank, stalls] += stall_s
        phases["exchange"][np.arange(2) != rank, stalls] += stall_s
    duration_s = series.steps.duration_s.copy()
    duration_s[stalls] += stall_s
    return replace(
        series,
        ranks=replace(series.ranks, phases=phases),
        steps=replace(series.steps, duration_s=duration_s),
    )


@pytest.mark.parametrize("every", [7, 390])
@pytest.mark.parametrize(("phase", "rank"), [("exchange", None), ("backward", 1), ("data", 0)])
def test_stalls_of_any_length_count_by_their_time_and_no_answer_jumps_from_sure_to_sure(
    phase: str, rank: int | None, every: int
) -> None:
    series = exchanged(network_s=0.02, steps=800, probed=THROUGHOUT, peak=9e12)
    assert judge(series).confidence == judge_gpus(series).confidence == "high"
    before = {"network": "no", "gpus": "yes"}
    for stall_s in np.geomspace(0.05, 500, 150):
        stalled = _stalling(series, phase=phase, rank=rank, every=every, stall_s=float(stall_s))
        for key, found in (("network", judge(stalled)), ("gpus", judge_gpus(stalled))):
            if found.confidence in {"high", "medium"}:
                assert before[key] in {found.verdict, "unsure"}
                before[key] = found.verdict
            else:
                before[key] = "unsure"
    assert before["gpus"] in {"no", "unsure"}
    assert before["network"] in ({"yes", "unsure"} if rank is None else {"no", "unsure"})


def without_steps(series: Series, first: int, last: int) -> Series:
    """The same where these steps left no line with any rank."""
    kept = (series.steps.step < first) | (series.steps.step > last)
    columns = {each.name: getattr(series.steps, each.name)[kept] for each in fields(Steps)}
    ranks = replace(
        series.ranks,
        duration_s=series.ranks.duration_s[:, kept],
        sent_bytes=series.ranks.sent_bytes[:, kept],
        phases={name: spent[:, kept] for name, spent in series.ranks.phases.items()},
    )
    return replace(series, steps=Steps(**columns), ranks=ranks)


def test_steps_that_left_no_line_may_have_cost_anything() -> None:
    whole = exchanged(network_s=0.02, steps=800, probed=range(20, 800, 60))
    few, many = (judge(without_steps(whole, 100, last)) for last in (120, 400))
    assert (judge(whole).confidence, few.confidence) == ("high", "high")
    assert many.confidence in {"low", "none"}


@settings(max_examples=40, deadline=None)
@given(
    network_s=st.sampled_from([0.02, 0.15, 0.3, 0.6]),
    slowing_s=st.sampled_from([0.0, 0.1]),
    gone_from=st.integers(0, 400),
    probes=st.integers(0, 6),
    rank=st.integers(0, 1),
)
def test_less_evidence_never_makes_an_answer_surer(
    network_s: float, slowing_s: float, gone_from: int, probes: int, rank: int
) -> None:
    kept = (20, 60, *range(180, 400, 60))[:probes]
    whole = exchanged(network_s=network_s, slowing_s=slowing_s, probed=(20, 60, *range(180, 400, 60)))
    fewer = exchanged(network_s=network_s, slowing_s=slowing_s, probed=kept)
    phases = {name: column.copy() for name, column in whole.ranks.phases.items()}
    for column in phases.values():
        column[rank, gone_from:] = np.nan
    torn = replace(whole, ranks=replace(whole.ranks, phases=phases))
    holed = without_steps(whole, gone_from, gone_from + 40 * probes)

    for judged in (judge, judge_gpus):
        sure = judged(whole)
        for less in (judged(fewer), judged(torn), judged(holed)):
            if less.verdict != sure.verdict:
                assert less.confidence in {"none", "low"}
            assert ORDER.index(less.confidence) <= ORDER.index(sure.confidence) or less.confidence == "low"


def test_probes_of_the_first_part_are_no_proof_for_a_link_that_slows_later() -> None:
    early, late = exchanged(network_s=0.02, steps=800), exchanged(network_s=0.3, steps=800)
    phases = {
        name: np.where(np.arange(800) < 400, column, late.ranks.phases[name])
        for name, column in early.ranks.phases.items()
    }
    found = judge(replace(early, ranks=replace(early.ranks, phases=phases)))

    assert found.confidence in {"low", "none"}


@pytest.mark.parametrize("stall_s", [60.0, 600.0])
def test_waits_that_a_host_which_stood_still_would_log_too_prove_nothing(stall_s: float) -> None:
    stalled = _stalling(exchanged(network_s=0.02), phase="exchange", rank=None, every=120, stall_s=stall_s)
    found = judge(stalled)
    assert (found.verdict, found.confidence) == ("yes", "low")
    assert "stood still while it waited" in found.doubt + "".join(found.missing)


def _read_ahead(computing: Rows, *, batch_s: Rows, network_s: Rows, ahead: int) -> tuple[Rows, Rows]:
    """Waits for data and for the exchange, where readers work ahead."""
    ranks, steps = computing.shape
    data, exchange = np.zeros_like(computing), np.zeros_like(computing)
    now, ready, taken = np.zeros(ranks), np.zeros(ranks), np.zeros((ahead, ranks))
    for step in range(steps):
        ready = np.maximum(ready, taken[step % ahead]) + batch_s[:, step]
        begin = np.maximum(now, ready)
        taken[step % ahead] = begin
        arrived = begin + computing[:, step]
        end = float(arrived.max() + network_s[step])
        data[:, step], exchange[:, step] = begin - now, end - arrived
        now = np.full(ranks, end + 0.04)
    return data, exchange


def test_late_data_of_readers_that_catch_up_at_once_take_nothing_from_the_network() -> None:
    series = exchanged(network_s=0.6)
    phases = {name: column.copy() for name, column in series.ranks.phases.items()}
    late = np.zeros((2, 400), np.float32)
    late[0, ::9] = late[1, 4::9] = 2.0
    phases["data"] += late
    phases["exchange"] += late[::-1]
    found = judge(replace(series, ranks=replace(series.ranks, phases=phases)))

    assert (found.verdict, found.confidence) == ("yes", "high")
    assert "whose data come late" in found.answer


def test_data_that_always_take_their_time_do_not_hide_the_network() -> None:
    assert judge(exchanged(network_s=1.0, data_s=0.3)).verdict == "yes"


def test_full_links_and_busy_gpus_do_not_make_it_the_network() -> None:
    series = exchanged(network_s=0.02, links=(link(240e6),))

    found = judge(replace(series, samples=carried(series, 244e6)))

    full = next(each for each in found.evidence if each.name == "alpha eth0 full")
    assert isinstance(full.value, float)
    assert full.value > 0.9
    assert found.verdict == "no"


def test_one_rank_exchanges_nothing() -> None:
    found = judge(exchanged(hosts=("alpha",)))

    assert (found.verdict, found.confidence) == ("no", "high")


def test_ranks_of_one_host_use_its_memory() -> None:
    found = judge(exchanged(network_s=0.8, hosts=("alpha", "alpha")))

    assert found.verdict == "no"
    assert "through its memory" in found.answer
    assert found.advice


def _half_logged(series: Series) -> Series:
    phases = {name: column.copy() for name, column in series.ranks.phases.items()}
    for column in phases.values():
        column[1] = np.nan
    return replace(series, ranks=replace(series.ranks, phases=phases))


def test_with_a_rank_unheard_of_a_wait_may_be_anything() -> None:
    found = judge(_half_logged(exchanged(network_s=1.0)))

    assert (found.verdict, found.confidence) == ("cannot tell", "none")
    assert "logs of all ranks for all of the time" in found.missing


def test_without_phases_nothing_is_told() -> None:
    found = judge(exchanged(steps=3))

    assert (found.verdict, found.confidence) == ("cannot tell", "none")


def test_what_others_would_give_is_said_where_it_matters() -> None:
    found = judge(exchanged(network_s=1.0, links=(link(243.5e6),)))

    assert "twice as fast" in found.advice
    assert "exchange.mode=auto" in found.advice
    assert "times the text" in found.advice
    assert "need 1.00 s at 244 MB/s" in found.answer
    assert judge(exchanged(network_s=0.01)).advice == ""


def test_an_exchange_slower_than_its_link_has_another_cause_too() -> None:
    found = judge(exchanged(network_s=1.0, links=(link(1.2e9),)))

    assert found.verdict == "yes"
    assert "something else slows the exchange" in found.answer


def test_an_imported_run_is_judged_by_arithmetic() -> None:
    assert "by arithmetic" in judge(imported(gpus=4, hosts=2, observed_nic_bytes_per_s=220e6)).answer
