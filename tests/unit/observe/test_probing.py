from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.unit.observe.verdicts.exchange_story import exchanged
from tests.unit.observe.verdicts.series_story import build_probes

from tandem.observe.probing import Slowing, slowing_of
from tandem.observe.series.columns import Probes, Series
from tandem.observe.split import split_steps

SLOWED_S = 0.2


def probed(*steps: int, slowed_s: float = SLOWED_S) -> Probes:
    """Two ranks' probes of steps that take 1 s without the exchange, in a run that waits 0.1 s for it."""
    rows = [(step, rank, 1.1 + slowed_s, 1.0, 0.1) for step in steps for rank in (0, 1)]
    return build_probes(*rows)


def slowed(*, slowing_s: float | NDArray[np.float64] = SLOWED_S) -> Series:
    """The run of these probes, whose computing is slowed by so much, one value or one a step."""
    series = exchanged(steps=2000)
    backward = series.ranks.phases["backward"] + np.float32(slowing_s)
    return replace(series, ranks=replace(series.ranks, phases={**series.ranks.phases, "backward": backward}))


def measured(series: Series, probes: Probes, *, encoded_from: int = 2001) -> Slowing:
    split = split_steps(series)
    assert split is not None
    return slowing_of(probes, split, modes=np.asarray(split.step >= encoded_from, np.int64))


def test_probes_all_along_the_run_speak_for_all_of_it() -> None:
    slowing = measured(slowed(), probed(*range(20, 2000, 100)))

    assert slowing.is_covered.all()
    assert slowing.most_s == pytest.approx(SLOWED_S)
    assert slowing.probes == 20


def test_probes_of_the_first_part_do_not_speak_for_the_rest() -> None:
    slowing = measured(slowed(), probed(20, 60, *range(180, 600, 100)))

    assert slowing.is_covered[:500].all()
    assert not slowing.is_covered[1000:].any()


def test_probes_of_an_exact_exchange_do_not_speak_for_encoded_steps() -> None:
    exact = probed(20, 40, 60)
    slowing = measured(slowed(), exact, encoded_from=61)
    is_exact = np.arange(2, 2001) <= 60
    assert (slowing.is_covered == is_exact).all()
    assert (slowing.most_s[~is_exact] == 0).all()
    again = measured(slowed(), probed(20, 40, 60, *range(180, 2000, 200)), encoded_from=61)
    assert again.is_covered.all()


def test_slowing_follows_the_run() -> None:
    early, late = probed(*range(20, 1000, 50), slowed_s=0.05), probed(*range(1020, 2000, 50), slowed_s=0.4)
    both = Probes(
        step=np.concatenate([early.step, late.step]),
        rank=np.concatenate([early.rank, late.rank]),
        synchronised_s=np.concatenate([early.synchronised_s, late.synchronised_s]),
        unsynchronised_s=np.concatenate([early.unsynchronised_s, late.unsynchronised_s]),
        exchange_s=np.concatenate([early.exchange_s, late.exchange_s]),
    )

    slowing = measured(slowed(slowing_s=np.where(np.arange(2000) < 1000, 0.05, 0.4)), both)

    assert slowing.most_s[:900] == pytest.approx(0.05)
    assert slowing.most_s[1100:] == pytest.approx(0.4)


def test_a_step_that_computes_for_much_longer_than_others_is_not_like_the_probed_ones() -> None:
    slowing = measured(
        slowed(slowing_s=np.where(np.arange(2000) == 500, 5.2, SLOWED_S)), probed(*range(20, 2000, 100))
    )

    assert not slowing.is_covered[499]
    assert slowing.is_covered[600]


@pytest.mark.parametrize(("together_s", "alone_s"), [(21.1, 1.0), (1.7, 1.0), (1.3, 1.6)])
def test_a_probe_that_was_held_up_in_one_of_its_passes_says_nothing(
    together_s: float, alone_s: float
) -> None:
    held_up = build_probes(*((500, rank, together_s, alone_s, 0.1) for rank in (0, 1)))
    quiet = probed(400, 600)
    both = Probes(
        **{name: np.concatenate([getattr(quiet, name), getattr(held_up, name)]) for name in Probes.__slots__}
    )

    slowing = measured(slowed(), both)

    assert slowing.probes == 2
    assert slowing.most_s[:500] == pytest.approx(SLOWED_S)


def test_without_probes_nothing_is_covered() -> None:
    slowing = measured(exchanged(probed=False), build_probes())

    assert slowing.probes == 0
    assert not slowing.is_covered.any()
