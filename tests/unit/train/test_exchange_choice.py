"""Which mode is chosen, by what was measured."""

import pytest

from tandem.parallel.exchange import ExchangeMode
from tandem.train.exchange_choice import Trial, choose_mode, predict_exposed

COMPUTE_S = 0.45


def trial(exact_s: float, *, codec_s: float = 0.0, on_cpu: bool = False) -> Trial:
    return Trial(
        exchange_s={"exact": exact_s, "bf16": exact_s / 2, "packed": exact_s / 8 + codec_s},
        codec_s={"exact": 0.0, "bf16": codec_s / 4, "packed": codec_s},
        tail_share=0.28,
        shares_processor=on_cpu,
    )


@pytest.mark.parametrize(
    ("exact_s", "synchronised_s", "mode"),
    [
        (0.02, 0.46, "exact"),  # a fast link: 2 % of the step
        (0.1, 0.48, "exact"),  # all of it hides but for its tail
        (0.3, 0.55, "bf16"),  # half of it hides, but for its tail of 0.04 s
        (0.5, 0.65, "packed"),  # the tail of half of it would be 13 % of the step
        (1.95, 2.1, "packed"),  # the reference run at 1 Gb/s
        (19.5, 19.6, "packed"),  # at 100 Mb/s nothing hides, and packed is the fastest
    ],
)
def test_the_most_exact_mode_that_hides_is_taken_or_else_the_fastest(
    exact_s: float, synchronised_s: float, mode: ExchangeMode
) -> None:
    exposed = predict_exposed(trial(exact_s), synchronised_s=synchronised_s, compute_s=COMPUTE_S)
    assert choose_mode(exposed, compute_s=COMPUTE_S) == mode


def test_exact_is_taken_as_it_was_measured() -> None:
    exposed = predict_exposed(trial(1.0), synchronised_s=1.25, compute_s=COMPUTE_S)
    assert exposed["exact"] == pytest.approx(0.8)
    # 0.2 s hid.
    assert exposed["bf16"] == pytest.approx(0.3)
    assert exposed["packed"] == pytest.approx(0.28 / 8)


def test_where_encoding_takes_the_processor_it_is_paid_for() -> None:
    on_gpu, on_cpu = (
        predict_exposed(trial(0.2, codec_s=0.4, on_cpu=on_cpu), synchronised_s=0.5, compute_s=COMPUTE_S)
        for on_cpu in (False, True)
    )
    assert on_cpu["packed"] == pytest.approx(on_gpu["packed"] + 0.4)
    assert on_cpu["exact"] == on_gpu["exact"]
    assert choose_mode(on_cpu, compute_s=COMPUTE_S) == "exact"
