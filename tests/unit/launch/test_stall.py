import pytest

from tandem.launch.stall import SHORTEST_S, START_S, TIMES, Standing, Watchdog


def standing(step: int, begun: int, done: int, collective: str = "sum", *, at: float = 0.0) -> Standing:
    return Standing(step=step, begun=begun, done=done, collective=collective, changed_s=at)


def trained(*, gap_s: float) -> Watchdog:
    """A watchdog that has seen ten steps of two ranks, so far apart."""
    dog = Watchdog(0.0)
    for step in range(11):
        dog.take({rank: standing(step, step, step) for rank in range(2)}, step * gap_s)
    return dog


def test_before_the_first_steps_there_is_time_to_compile() -> None:
    dog = Watchdog(0.0)
    dog.take({0: standing(0, 1, 1)}, 5.0)
    assert dog.maybe_stall(5.0 + START_S - 1) is None
    assert dog.maybe_stall(5.0 + START_S) is not None


def test_ranks_that_never_spoke_hang_too() -> None:
    assert Watchdog(0.0).maybe_stall(START_S - 1) is None
    assert Watchdog(0.0).maybe_stall(START_S) is not None


def test_slow_steps_are_given_their_time() -> None:
    dog = trained(gap_s=40.0)
    assert dog.limit_s == TIMES * 40.0
    assert dog.maybe_stall(400.0 + 300.0) is None


def test_after_quick_steps_a_short_while_is_long() -> None:
    dog = trained(gap_s=0.1)
    assert dog.maybe_stall(1.0 + SHORTEST_S - 1.0) is None
    assert dog.maybe_stall(1.0 + SHORTEST_S) is not None


def test_signs_of_life_without_a_step_count() -> None:
    dog = trained(gap_s=0.1)
    dog.take({0: standing(10, 10, 10, at=7.0)}, 50.0)
    assert dog.maybe_stall(50.0 + SHORTEST_S - 1.0) is None


@pytest.mark.parametrize(
    ("standings", "rank"),
    [
        pytest.param([(12, 12, 11), (12, 11, 11)], 1, id="one did not come to the collective"),
        pytest.param([(12, 12, 12), (12, 12, 11)], 0, id="one left it and went nowhere"),
        pytest.param([(12, 12, 11), (12, 12, 11)], 0, id="all are in it"),
    ],
)
def test_the_rank_that_the_others_wait_for_is_named(standings: list[tuple[int, int, int]], rank: int) -> None:
    dog = trained(gap_s=0.1)
    dog.take({number: standing(*held, "barrier") for number, held in enumerate(standings)}, 2.0)
    stall = dog.maybe_stall(1000.0)
    assert stall is not None
    assert (stall.rank, stall.collective, stall.step) == (rank, "barrier", 12)
    assert stall.waited_s == 998.0
