import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-untyped]
from tensorboard.compat.proto.tensor_pb2 import TensorProto  # type: ignore[import-untyped]
from tests.unit.observe.imports.board import write_points

from tandem.observe.imports.event_points import EventFile, Point, is_event_file
from tandem.observe.sinks.event_file import frame, masked_crc32c

FLOAT, DOUBLE, STRING = 1, 2, 7


def read(path: Path, data: bytes) -> tuple[list[Point], EventFile]:
    path.write_bytes(data)
    file = EventFile(path)
    return list(file.points()), file


def event(tensor: TensorProto, *, step: int = 5) -> bytes:
    made = Event(wall_time=2.5, step=step)
    made.summary.value.add(tag="loss", tensor=tensor)
    return frame(made.SerializeToString())


def test_numbers_of_the_first_tensorflow_are_read(tmp_path: Path) -> None:
    path = write_points(tmp_path, [(1.5, 7, {"a": 0.5, "b": -2.0}), (2.5, 8, {"a": 0.25})])
    file = EventFile(path)
    assert list(file.points()) == [
        Point(wall_s=1.5, step=7, tag="a", value=0.5),
        Point(wall_s=1.5, step=7, tag="b", value=-2.0),
        Point(wall_s=2.5, step=8, tag="a", value=0.25),
    ]
    assert (file.is_torn, file.skipped) == (False, 0)


@pytest.mark.parametrize(
    "tensor",
    [
        TensorProto(dtype=FLOAT, float_val=[0.5]),
        TensorProto(dtype=DOUBLE, double_val=[0.5]),
        TensorProto(dtype=FLOAT, tensor_content=struct.pack("<f", 0.5)),
        TensorProto(dtype=DOUBLE, tensor_content=struct.pack("<d", 0.5)),
    ],
)
def test_numbers_in_tensors_are_read(tmp_path: Path, tensor: TensorProto) -> None:
    points, _ = read(tmp_path / "file", event(tensor))
    assert points == [Point(wall_s=2.5, step=5, tag="loss", value=0.5)]


@pytest.mark.parametrize(
    "tensor",
    [
        TensorProto(dtype=STRING, string_val=[b"a text"]),
        TensorProto(dtype=FLOAT, float_val=[0.5, 0.25]),
        TensorProto(dtype=FLOAT, tensor_content=b"\x00" * 8),
        TensorProto(),
    ],
)
def test_tensors_that_hold_no_single_number_are_passed_over(tmp_path: Path, tensor: TensorProto) -> None:
    points, file = read(tmp_path / "file", event(tensor))
    assert points == []
    assert (file.is_torn, file.skipped) == (False, 0)


def test_histograms_pictures_and_graphs_are_passed_over(tmp_path: Path) -> None:
    made = Event(wall_time=1.0, step=1)
    made.summary.value.add(tag="h").histo.min = 0.5
    graph = Event(wall_time=1.0, graph_def=b"x" * 2_000_000)
    data = frame(made.SerializeToString()) + frame(graph.SerializeToString())
    points, file = read(tmp_path / "file", data + event(TensorProto(dtype=FLOAT, float_val=[0.5])))
    assert [point.tag for point in points] == ["loss"]
    assert not file.is_torn


def test_a_step_below_zero_is_read_as_it_is(tmp_path: Path) -> None:
    points, _ = read(tmp_path / "file", event(TensorProto(dtype=FLOAT, float_val=[0.5]), step=-1))
    assert points[0].step == -1


def test_a_file_that_is_cut_anywhere_gives_what_is_whole(tmp_path: Path) -> None:
    data = write_points(tmp_path, [(float(number), number, {"a": 0.5}) for number in range(3)]).read_bytes()
    counts = []
    for place in range(len(data) + 1):
        points, file = read(tmp_path / "cut", data[:place])
        assert [point.step for point in points] == list(range(len(points)))
        counts.append(len(points))
    assert counts == sorted(counts)
    assert counts[-1] == 3
    assert not file.is_torn


@pytest.mark.parametrize("place", [0, 8, 14, -2])
def test_a_spoilt_byte_ends_the_file_there(tmp_path: Path, place: int) -> None:
    good = write_points(tmp_path, [(1.0, 1, {"a": 0.5})]).read_bytes()
    bad = bytearray(event(TensorProto(dtype=FLOAT, float_val=[0.5])))
    bad[place] ^= 0x40
    points, file = read(
        tmp_path / "bad", good + bytes(bad) + event(TensorProto(dtype=FLOAT, float_val=[0.25]))
    )
    assert len(points) == 1
    assert file.is_torn


def test_a_length_beyond_the_file_is_believed_no_more_than_the_file(tmp_path: Path) -> None:
    length = struct.pack("<Q", 1 << 62)
    points, file = read(tmp_path / "huge", length + struct.pack("<I", masked_crc32c(length)) + b"x" * 100)
    assert points == []
    assert file.is_torn


def test_a_whole_record_that_makes_no_sense_is_counted(tmp_path: Path) -> None:
    points, file = read(
        tmp_path / "file",
        frame(b"\x2a\xff") + frame(b"\xff" * 12) + event(TensorProto(dtype=FLOAT, float_val=[0.5])),
    )
    assert len(points) == 1
    assert file.skipped == 2


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(st.binary(max_size=60), max_size=4), tail=st.binary(max_size=30))
def test_nothing_that_a_file_holds_is_an_error(tmp_path: Path, records: list[bytes], tail: bytes) -> None:
    read(tmp_path / "any", b"".join(frame(record) for record in records) + tail)


def test_event_files_are_known_by_their_names() -> None:
    assert is_event_file(Path("events.out.tfevents.1600000000.alpha"))
    assert is_event_file(Path("1.alpha.tfevents.v2"))
    assert not is_event_file(Path("model.ckpt-1.index"))
