"""Which mode is chosen, by what was measured."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.estimate.exchange import MOST_EXPOSED
from tandem.parallel.exchange import MODES, ExchangeMode
from tandem.train.exchange_choice import (
    MARGIN,
    Prediction,
    Probe,
    Trial,
    choose_mode,
    is_unsure,
    later_half,
    predict,
)

COMPUTE_S = 0.45
SECONDS = st.floats(0.001, 10)


def trial(exact_s: float, *, codec_s: float = 0.0, on_cpu: bool = False) -> Trial:
    return Trial(
        exchange_s={"exact": exact_s, "bf16": exact_s / 2, "packed": exact_s / 8 + codec_s},
        codec_s={"exact": 0.0, "bf16": codec_s / 4, "packed": codec_s},
        tail_share=0.28,
        shares_processor=on_cpu,
    )


def probe(exposed_s: float, *, compute_s: float = COMPUTE_S, late_s: float = 0.0) -> Probe:
    """Of two ranks; the second is late in the step with exchange alone."""
    end_s = compute_s + late_s + exposed_s
    return Probe(
        compute_s=(compute_s, compute_s),
        synchronised_s=(end_s, end_s),
        wait_s=(exposed_s + late_s, exposed_s),
    )


def predicted(exposed: tuple[float, float, float], *, spread_s: float = 0.0) -> Prediction:
    return Prediction(compute_s=1.0, exposed_s=dict(zip(MODES, exposed, strict=True)), spread_s=spread_s)


def exposed_for(share: float) -> float:
    return share / (1 - share)


@pytest.mark.parametrize(
    ("exact_s", "synchronised_s", "mode"),
    [
        (0.02, 0.46, "exact"),  # a fast link: 2 % of the step
        (0.1, 0.48, "exact"),  # all of it hides but for its tail
        (0.2, 0.52, "exact"),  # over a tenth, but not by the margin
        (0.3, 0.55, "bf16"),  # half of it hides, but for its tail of 0.04 s
        (0.5, 0.65, "packed"),  # the tail of half of it would be 13 % of the step
        (1.95, 2.1, "packed"),  # the reference run at 1 Gb/s
        (19.5, 19.6, "packed"),  # at 100 Mb/s nothing hides, and packed is the fastest
    ],
)
def test_the_most_exact_mode_that_hides_is_taken_or_else_the_fastest(
    exact_s: float, synchronised_s: float, mode: ExchangeMode
) -> None:
    tried = trial(exact_s)
    assert choose_mode(predict(tried, [probe(synchronised_s - COMPUTE_S)] * 3), tried) == mode


def test_exact_is_taken_as_it_was_measured() -> None:
    found = predict(trial(1.0), [probe(0.8), probe(0.7), probe(0.9)])
    assert found.exposed_s["exact"] == pytest.approx(0.8)
    assert found.spread_s == pytest.approx(0.2)
    # 0.2 s hid.
    assert found.exposed_s["bf16"] == pytest.approx(0.3)
    assert found.exposed_s["packed"] == pytest.approx(0.28 / 8)


def test_where_encoding_takes_the_processor_it_is_paid_for() -> None:
    on_gpu, on_cpu = (
        predict(trial(0.2, codec_s=0.4, on_cpu=on_cpu), [probe(0.15)]) for on_cpu in (False, True)
    )
    assert on_cpu.exposed_s["packed"] == pytest.approx(on_gpu.exposed_s["packed"] + 0.4)
    assert on_cpu.exposed_s["exact"] == on_gpu.exposed_s["exact"]


def test_a_trial_in_the_burst_of_a_shaped_link_is_no_faster_than_steps_were() -> None:
    """What passes at 10 Gb/s in the trial takes a step of 100 Mb/s a hundred times as long."""
    burst = trial(0.004, codec_s=0.0005)
    found = predict(burst, [probe(0.4)] * 3)
    assert found.exposed_s["bf16"] == pytest.approx(0.2, rel=0.1)
    assert found.exposed_s["packed"] == pytest.approx(0.05, rel=0.1)
    assert choose_mode(found, burst) == "packed"


def test_the_later_half_counts() -> None:
    assert later_half([0.001, 0.001, 0.3, 0.31, 0.32]) == 0.31
    assert later_half([2.0]) == 2.0


@given(exposed_s=st.floats(0, 10), late_s=SECONDS, other_s=SECONDS)
def test_a_late_rank_is_no_fault_of_the_exchange(exposed_s: float, late_s: float, other_s: float) -> None:
    assert probe(exposed_s, late_s=late_s).exposed_s == pytest.approx(exposed_s, abs=1e-9)
    # Nor is one that is always slower.
    slow = COMPUTE_S + other_s
    always = Probe(
        compute_s=(COMPUTE_S, slow),
        synchronised_s=(slow + exposed_s, slow + exposed_s),
        wait_s=(exposed_s + other_s, exposed_s),
    )
    assert always.exposed_s == pytest.approx(exposed_s, abs=1e-9)


def test_an_exchange_that_slows_all_ranks_is_counted() -> None:
    slowed = Probe(compute_s=(1.0, 1.1), synchronised_s=(1.6, 1.6), wait_s=(0.3, 0.2))
    assert slowed.exposed_s == pytest.approx(0.2 + 0.3)


@pytest.mark.parametrize(
    ("share", "mode"), [(MOST_EXPOSED + MARGIN - 0.001, "exact"), (MOST_EXPOSED + MARGIN + 0.001, "bf16")]
)
def test_exact_is_left_only_beyond_the_margin(share: float, mode: ExchangeMode) -> None:
    assert choose_mode(predicted((exposed_for(share), 0.01, 0.0)), trial(1.0)) == mode


@pytest.mark.parametrize(("spread_s", "mode"), [(0.29, "bf16"), (0.31, "exact")])
def test_a_gain_must_stand_out_from_how_far_probes_differ(spread_s: float, mode: ExchangeMode) -> None:
    assert choose_mode(predicted((0.4, 0.1, 0.095), spread_s=spread_s), trial(1.0)) == mode


def test_while_a_burst_is_spent_probes_differ_too_much_to_choose_by() -> None:
    """As in a lab at 100 Mb/s: the first steps still found 16 MB of burst."""
    tried = trial(0.177, codec_s=0.007, on_cpu=True)
    probes = [probe(exposed_s, compute_s=0.045) for exposed_s in (0.013, 0.064, 0.129, 0.131, 0.133)]
    early, late = predict(tried, probes[:3]), predict(tried, probes[2:])
    assert (choose_mode(early, tried), is_unsure(early, tried)) == ("exact", True)
    assert (choose_mode(late, tried), is_unsure(late, tried)) == ("packed", False)
    assert not is_unsure(predicted((0.01, 0.005, 0.0), spread_s=1.0), tried)


def test_a_mode_whose_trial_was_slower_is_never_taken() -> None:
    slower = replace(trial(1.0), exchange_s={"exact": 1.0, "bf16": 1.01, "packed": 1.02})
    assert choose_mode(predicted((0.4, 0.0, 0.0)), slower) == "exact"


@given(
    exposed=st.tuples(SECONDS, SECONDS, SECONDS),
    tried=st.tuples(SECONDS, SECONDS, SECONDS),
    spread_s=st.floats(0, 2),
)
def test_whatever_was_measured_the_choice_keeps_to_its_rules(
    exposed: tuple[float, float, float], tried: tuple[float, float, float], spread_s: float
) -> None:
    found = predicted(exposed, spread_s=spread_s)
    trials = replace(trial(1.0), exchange_s=dict(zip(MODES, tried, strict=True)))
    mode = choose_mode(found, trials)
    if found.share("exact") <= MOST_EXPOSED + MARGIN:
        assert mode == "exact"
    if mode != "exact":
        assert found.exposed_s["exact"] - found.exposed_s[mode] > spread_s
        assert trials.exchange_s[mode] < trials.exchange_s["exact"]
    # A more exact mode was passed over only because it costs too much, or nothing was gained by it.
    for better in MODES[1 : MODES.index(mode)]:
        gain_s = found.exposed_s["exact"] - found.exposed_s[better]
        is_open = gain_s > spread_s and trials.exchange_s[better] < trials.exchange_s["exact"]
        assert not is_open or found.share(better) > MOST_EXPOSED


def test_what_a_link_saved_up_in_a_probe_is_no_gain() -> None:
    """Steps before the probe waited for longer than it did, all ranks of them."""
    assert replace(probe(0.1), usual_wait_s=0.14).exposed_s == 0.14
    assert replace(probe(0.1), usual_wait_s=0.05).exposed_s == pytest.approx(0.1)
