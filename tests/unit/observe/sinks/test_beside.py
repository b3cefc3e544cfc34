import sys
from pathlib import Path

from tandem.observe.sinks.beside import start_beside

NOTHING = [sys.executable, "-P", "-c", "print('forwarded')"]


def test_nothing_is_written_through_a_linked_folder(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "forward").symlink_to("elsewhere")
    beside = start_beside(tmp_path, "mlflow", command=NOTHING)
    assert beside.process is None
    assert "could not be started" in beside.failure
    assert not any((tmp_path / "elsewhere").iterdir())


def test_a_note_that_is_a_link_is_replaced_and_what_it_points_to_stays(tmp_path: Path) -> None:
    (tmp_path / "forward").mkdir()
    (tmp_path / "elsewhere").write_text("mine")
    note = tmp_path / "forward" / "mlflow.txt"
    note.symlink_to(tmp_path / "elsewhere")
    beside = start_beside(tmp_path, "mlflow", command=NOTHING)
    assert beside.process is not None
    beside.process.communicate(timeout=60)
    assert (tmp_path / "elsewhere").read_text() == "mine"
    assert note.read_text() == "forwarded\n"
