import pytest
import torch.distributed as dist

from tandem.launch.worker import _is_lost_peer


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
