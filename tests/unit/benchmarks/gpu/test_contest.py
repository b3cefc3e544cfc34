"""Only what finds the same is timed, and what fails says why."""

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from benchmarks.gpu.contest import OURS, Contender, Contest, Ready, by_autograd, hold
from benchmarks.gpu.stopwatch import Stopwatch
from torch import Tensor

WANTED = torch.linspace(-1, 1, 50)
BYTES_PER_S = 1e9


def finding(name: str, found: Tensor) -> Contender:
    return Contender(name=name, prepare=lambda: Ready(runs={"forward": lambda: None}, outcome={"out": found}))


def failing() -> Ready:
    raise RuntimeError("no such kernel\nand a long story")


def held(*others: Contender, seconds: float = 60.0) -> list[dict[str, Any]]:
    contest = Contest(
        kernel="work",
        size="tiny",
        contenders=[finding(OURS, WANTED), *others],
        least_bytes={"forward": 4000},
        flops={"forward": 1e6},
    )
    until = time.monotonic() + seconds
    return hold(contest, Stopwatch(torch.device("cpu")), bytes_per_s=BYTES_PER_S, until=until)


def test_a_row_has_time_floor_and_speed() -> None:
    (row,) = held()
    assert (row["kernel"], row["size"], row["side"], row["way"]) == ("work", "tiny", OURS, "forward")
    assert row["floor_us"] == 4.0
    assert row["us"] > 0
    assert row["share_of_floor"] == pytest.approx(4.0 / row["us"], rel=0.05)
    assert row["tflops_per_s"] == pytest.approx(1 / row["us"], rel=0.05)
    assert (row["judged_by"], row["difference"]) == (OURS, 0.0)


def test_rounding_is_no_difference() -> None:
    _, row = held(finding("half", WANTED.bfloat16()))
    assert row["us"] > 0
    assert 0 < row["difference"] < 0.01


@pytest.mark.parametrize(
    "found",
    [
        WANTED * 1.05,
        torch.zeros(50),
        WANTED.clone().index_fill_(0, torch.tensor([7]), torch.nan),
        WANTED[:-1],
    ],
    ids=["scaled", "zero", "nan", "shorter"],
)
def test_what_differs_is_not_timed(found: Tensor) -> None:
    _, row = held(finding("other", found))
    assert row["side"] == "other"
    assert "us" not in row
    assert row["error"].startswith("ValueError")


def test_one_that_fails_leaves_its_first_line_and_the_others_go_on() -> None:
    _, failed, last = held(Contender(name="broken", prepare=failing), finding("last", WANTED))
    assert failed["error"] == "RuntimeError: no such kernel"
    assert last["side"] == "last"
    assert last["us"] > 0


def test_nothing_is_begun_after_the_time_is_up() -> None:
    rows = held(Contender(name="broken", prepare=failing), seconds=-1)
    assert [row["error"] for row in rows] == ["left out, as the time was up"] * 2


@pytest.mark.parametrize("way", ["backward", "both"])
def test_runs_of_a_function_give_its_gradients_again_and_again(way: str) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    runs: dict[str, Callable[[], Any]] = by_autograd(
        lambda x: (x * x, 3 * x), [x], [torch.ones(2), torch.ones(2)]
    )
    for _ in range(2):
        (gradient,) = runs[way]()
        assert gradient.tolist() == [5.0, 7.0]
