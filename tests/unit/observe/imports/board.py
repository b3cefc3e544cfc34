"""Event files for TensorBoard, written by its own classes and by ours."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tandem.observe.sinks.event_file import encode_scalars, encode_version, frame

NAME = "events.out.tfevents.1600000000.alpha"


def write_points(
    folder: Path, points: Sequence[tuple[float, int, Mapping[str, float]]], *, name: str = NAME
) -> Path:
    """A file with these points: time, step, numbers by tag."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    data = [frame(encode_version(points[0][0] if points else 0.0))]
    data += [frame(encode_scalars(time_s, step=step, scalars=scalars)) for time_s, step, scalars in points]
    path.write_bytes(b"".join(data))
    return path
