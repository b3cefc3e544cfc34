import struct
from pathlib import Path

import pytest
from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # type: ignore[import-untyped]
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import (  # type: ignore[import-untyped]
    masked_crc32c,
)

from tandem.observe.sinks.event_file import encode_restart, encode_scalars, encode_version, frame, read_times


def parsed(data: bytes) -> Event:
    event = Event()
    event.ParseFromString(data)
    return event


def test_a_frame_has_the_checksums_that_readers_compute() -> None:
    data = bytes(range(256)) * 3
    framed = frame(data)
    length = struct.pack("<Q", len(data))
    assert framed == b"".join(
        [length, struct.pack("<I", masked_crc32c(length)), data, struct.pack("<I", masked_crc32c(data))]
    )


def test_the_first_event_names_the_version() -> None:
    event = parsed(encode_version(1.5))
    assert (event.wall_time, event.file_version) == (1.5, "brain.Event:2")


def test_a_restart_names_the_first_step_to_forget() -> None:
    event = parsed(encode_restart(2.5, step=301))
    assert (event.wall_time, event.step) == (2.5, 301)
    assert event.session_log.status == SessionLog.START


@pytest.mark.parametrize("step", [0, 1, 127, 128, 300_000, 2**40])
def test_scalars_read_back_as_they_were(step: int) -> None:
    event = parsed(encode_scalars(3.5, step=step, scalars={"train_loss": 2.25, "größe": -1.0}))
    assert event.step == step
    assert {value.tag: value.simple_value for value in event.summary.value} == {
        "train_loss": 2.25,
        "größe": -1.0,
    }


def test_a_number_too_great_for_the_file_is_infinite_there() -> None:
    event = parsed(encode_scalars(0.0, step=1, scalars={"up": 1e300, "down": -1e300}))
    assert [value.simple_value for value in event.summary.value] == [float("inf"), float("-inf")]


@pytest.mark.parametrize("tail", [b"", b"\x01", b"\xff" * 40, frame(encode_version(9.0))[:-1]])
def test_times_are_read_up_to_where_the_file_is_torn(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "events"
    path.write_bytes(frame(encode_version(1.0)) + frame(encode_restart(2.0, step=1)) + tail)
    assert list(read_times(path)) == [1.0, 2.0]
