import os
from pathlib import Path

import pytest
import torch.distributed as dist

from tandem.files import UnfitFileError
from tandem.launch.worker import _is_lost_peer, _place, open_output, output_file
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


def test_output_goes_to_no_file_that_a_link_or_a_pipe_stands_for(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "precious").write_text("mine")
    output_file(tmp_path / "log", 0).symlink_to(tmp_path / "precious")
    os.mkfifo(output_file(tmp_path / "log", 1))
    (tmp_path / "linked").symlink_to(tmp_path / "log")
    places = [
        output_file(tmp_path / "log", 0),
        output_file(tmp_path / "log", 1),
        output_file(tmp_path / "linked", 2),
    ]
    for place in places:
        with pytest.raises(UnfitFileError), open_output(place):
            pass
    assert (tmp_path / "precious").read_text() == "mine"


def test_output_is_appended(tmp_path: Path) -> None:
    place = output_file(tmp_path / "run/log", 3)
    for text in (b"one\n", b"two\n"):
        with open_output(place) as file:
            file.write(text)
    assert place.read_bytes() == b"one\ntwo\n"
