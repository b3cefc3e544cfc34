"""Messages, and the lanes in which they are made."""

from functools import partial

import pytest
import torch

from tandem.parallel.lane import Lane
from tandem.parallel.messages import SEAL_BYTES, DamagedMessageError, Origin, check_seal, seal

ORIGIN = Origin(step=7, bucket=2, rank=1)


def sealed() -> torch.Tensor:
    message = torch.arange(100 + SEAL_BYTES, dtype=torch.uint8)
    seal(message, ORIGIN)
    return message


def test_a_message_fits_its_own_seal() -> None:
    check_seal(sealed(), ORIGIN, receiver=0)


@pytest.mark.parametrize("place", [0, 57, 99, 100, 103])
def test_a_flipped_bit_is_found_wherever_it_is(place: int) -> None:
    message = sealed()
    message[place] ^= 32
    with pytest.raises(DamagedMessageError, match="rank 1 encoded for bucket 3 of step 7 reached rank 5"):
        check_seal(message, ORIGIN, receiver=5)


@pytest.mark.parametrize(
    "other",
    [
        Origin(step=8, bucket=2, rank=1),
        Origin(step=7, bucket=3, rank=1),
        Origin(step=7, bucket=2, rank=0),
    ],
)
def test_a_message_of_another_step_bucket_or_rank_does_not_fit(other: Origin) -> None:
    with pytest.raises(DamagedMessageError):
        check_seal(sealed(), other, receiver=0)


def test_a_lane_does_its_tasks_in_order_and_gives_errors_to_whoever_waits() -> None:
    lane = Lane("test", torch.device("cpu"))
    done: list[int] = []

    def fail() -> None:
        raise ValueError("planted")

    futures = [lane.submit(partial(done.append, number)) for number in range(50)]
    failing, after = lane.submit(fail), lane.submit(torch.is_grad_enabled)
    with pytest.raises(ValueError, match="planted"):
        failing.result(timeout=30)
    assert after.result(timeout=30) is False
    assert all(future.done() for future in futures)
    assert done == list(range(50))
    lane.close()
    lane._thread.join(timeout=30)
    assert not lane._thread.is_alive()
