from pathlib import Path

import pytest
import torch.distributed as dist

from tandem.launch.worker import _is_lost_peer, _place
from tandem.parallel.pulse import PULSE, PulseWriter


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("[gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:1: Connection reset by peer."),
        RuntimeError(
            "[gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 60000ms for recv operation"
        ),
        dist.DistBackendError("NCCL error: remote process exited or there was a network error"),
        dist.DistNetworkError("The client socket has timed out"),
    ],
)
def test_a_broken_connection_is_told_from_other_errors(error: Exception) -> None:
    assert _is_lost_peer(error)


@pytest.mark.parametrize(
    "error", [RuntimeError("shape mismatch"), BrokenPipeError("Broken pipe"), KeyError("Connection")]
)
def test_other_errors_are_not_taken_for_one(error: Exception) -> None:
    assert not _is_lost_peer(error)


def lose_a_peer_in(pulse: PulseWriter, collective: str) -> None:
    with pytest.raises(RuntimeError, match="reset"), pulse.collective(collective):
        raise RuntimeError("Connection reset by peer")


def test_a_lost_peer_is_told_with_the_collective_and_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PULSE, str(tmp_path / "pulse"))
    pulse = PulseWriter(tmp_path / "pulse")
    assert _place() == ""
    lose_a_peer_in(pulse, "gather")
    assert _place() == "in gather at the start: "
    pulse.beat(17)
    lose_a_peer_in(pulse, "sum of bucket 3")
    assert _place() == "in sum of bucket 3 of step 17: "


def test_without_a_pulse_nothing_is_told_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PULSE, raising=False)
    assert _place() == ""
