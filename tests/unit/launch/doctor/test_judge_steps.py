"""Steps on the hosts as measured: which mode, and whether they are worth it."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.launch.doctor.findings import GPU, MACHINE, examination, host

from tandem.config import load_recipe
from tandem.launch.doctor.examination import Examination
from tandem.launch.doctor.facts import SumFacts
from tandem.launch.doctor.judge import judge
from tandem.launch.doctor.line import Line
from tandem.launch.doctor.needs import Needs
from tandem.launch.doctor.steps import PredictedSteps, predict_steps

# As EXCHANGE.md's reference: 0.45 s of computing on two hosts, 61 M parameters, the last bucket 28 % of them.
NEEDS = replace(
    Needs.of(None),
    gradient_bytes=243_523_584,
    update_tokens=25_000,
    step_flops=0.9e13,
    is_half=True,
    tail_share=0.28,
)
RANK_FLOPS_PER_S = 2e13


def found(bits_per_s: float, *, needs: Needs = NEEDS, **machine: object) -> Examination:
    """Two hosts of one GPU each."""
    on_gpu = {
        "gpus": (GPU,),
        "usable_gpus": 1,
        "gpu_flops_per_s": (RANK_FLOPS_PER_S,),
        **machine,
    }
    sums = SumFacts(
        hosts=("a", "b"),
        left_out=(),
        device="cuda" if on_gpu["gpus"] else "cpu",
        gradient_bytes=needs.gradient_bytes,
        summed_bytes=10**8,
        seconds=8 * 10**8 / bits_per_s,
    )
    hosts = [host(name, machine=replace(MACHINE, **on_gpu)) for name in "ab"]  # type: ignore[arg-type]
    return examination(hosts, sums=sums, needs=needs)


def predicted(examined: Examination) -> PredictedSteps:
    steps = predict_steps(examined)
    assert steps is not None
    return steps


def lines(examined: Examination) -> dict[str, Line]:
    return {line.what: line for line in judge(examined) if line.what.startswith(("step", "larger"))}


@pytest.mark.parametrize(
    ("gigabits", "fp32", "packed"), [(0.94, 20, 83), (0.094, 2, 16)], ids=["1 Gb/s", "100 Mb/s"]
)
def test_shares_of_computing_are_those_of_the_model_that_real_traffic_confirmed(
    gigabits: float, fp32: float, packed: float
) -> None:
    """Of 93 to 95 % of the line rate, as gloo reaches (FIELD.md)."""
    steps = predicted(found(gigabits * 1e9))
    assert steps.compute_s == pytest.approx(0.45)
    shares = {step.mode: 100 * steps.compute_s / step.step_s for step in steps.modes}
    assert shares["exact"] == pytest.approx(fp32, abs=1)
    assert shares["packed"] == pytest.approx(packed, abs=4)
    assert shares["exact"] < shares["bf16"] < shares["packed"]


def test_a_fast_link_is_fine_in_every_mode_and_needs_no_larger_update() -> None:
    told = lines(found(100e9))
    assert [line.verdict for line in told.values()] == ["fine"] * 5
    assert "larger update" not in told
    assert "900 ms, 27,778 target tokens/s" in told["step, a alone"].value
    assert "TFLOP at 50 % of the slowest rank's 20 TFLOP/s" in told["steps assume"].value


def test_a_mode_that_is_slower_than_one_host_is_poor_and_the_one_that_helps_is_named() -> None:
    told = lines(found(0.94e9))
    assert [told[f"step, {mode}"].verdict for mode in ("exact", "bf16", "packed")] == ["poor", "poor", "fine"]
    assert "try --exchange packed" in told["step, exact"].cure
    assert "--exchange" not in told["step, bf16"].cure
    assert told["larger update"].verdict == "fine"


@pytest.mark.parametrize("mode", ["bf16", "packed", "auto"])
def test_no_cure_names_the_mode_that_the_recipe_has(mode: str) -> None:
    for gigabits in (0.05, 0.3, 0.94, 3):
        told = lines(found(gigabits * 1e9, needs=replace(NEEDS, mode=mode)))
        assert not any(f"--exchange {mode}" in line.cure for line in told.values())
        assert mode != "auto" or not any("--exchange" in line.cure for line in told.values())


def test_where_no_mode_helps_one_host_and_a_larger_update_are_left() -> None:
    told = lines(found(0.04e9))
    assert {told[f"step, {mode}"].verdict for mode in ("exact", "bf16", "packed")} == {"poor"}
    assert told["step, exact"].cure.endswith(
        "train on a, or take a larger update with --exchange packed, as below."
    )
    assert "An update of 16 times the text (batch.target_tokens=400000)" in told["larger update"].value


def test_a_larger_update_that_one_host_does_as_fast_is_no_advice() -> None:
    told = lines(found(0.01e9))
    assert "larger update" not in told
    assert told["step, exact"].cure.endswith("in any mode: train on a.")


def test_on_processors_encoding_is_paid_for() -> None:
    on_cpu = predicted(
        found(0.94e9, gpus=(), usable_gpus=0, gpu_flops_per_s=(), cpu_flops_per_s=RANK_FLOPS_PER_S)
    )
    on_gpu = predicted(found(0.94e9))
    assert on_cpu.modes[0] == on_gpu.modes[0]
    assert on_cpu.modes[2].exposed_s - on_gpu.modes[2].exposed_s == pytest.approx(0.63, abs=0.01)


@pytest.mark.parametrize(
    "examined",
    [
        examination([host("a"), host("b")], needs=NEEDS),
        found(1e9, needs=replace(NEEDS, step_flops=0.0)),
        found(1e9, needs=replace(NEEDS, is_half=False)),
        found(1e9, gpus=(), usable_gpus=0, gpu_flops_per_s=()),
    ],
    ids=["no sum", "no batch", "speed in another precision", "no speed"],
)
def test_what_is_not_known_is_not_predicted(examined: Examination) -> None:
    assert predict_steps(examined) is None
    assert lines(examined) == {}


def test_a_recipe_says_its_mode_and_what_is_complete_last(repository: Path) -> None:
    recipe = load_recipe(repository / "recipes/demo.yaml", ["exchange.mode=packed", "train.precision=fp32"])
    needs = Needs.of(recipe.recipe)
    assert (needs.mode, needs.is_half) == ("packed", False)
    assert 0 < needs.tail_share < 0.5
