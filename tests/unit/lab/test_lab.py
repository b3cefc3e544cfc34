from pathlib import Path

import pytest

from tandem.errors import TandemError
from tandem.lab import Lab
from tandem.lab import lab as module


@pytest.fixture(autouse=True)
def _fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this machine were fit; a test here that went on to make something would fail for want of a plan."""
    monkeypatch.setattr(module, "check_fitness", lambda: None)
    monkeypatch.delattr(module, "_plan")


def test_a_folder_that_holds_something_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab/mine").write_text("mine")
    with pytest.raises(TandemError, match="is not empty"):
        Lab.up(tmp_path / "lab")
    assert [path.name for path in tmp_path.rglob("*")] == ["lab", "mine"]


def test_a_folder_that_its_hosts_could_not_see_is_refused() -> None:
    with pytest.raises(TandemError, match="a /run of their own"):
        Lab.up(Path("/run/tandem-lab-that-is-not-there"))


@pytest.mark.parametrize("hosts", [0, -1, 101])
def test_too_few_or_too_many_hosts_are_refused(tmp_path: Path, hosts: int) -> None:
    with pytest.raises(TandemError, match="A lab has 1 to 100 hosts"):
        Lab.up(tmp_path / "lab", hosts=hosts)


def test_wrong_links_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="is no rate"):
        Lab.up(tmp_path / "lab", rate="fast")
    assert list(tmp_path.iterdir()) == []


def test_removing_a_lab_that_is_not_there_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "hosts").mkdir()
    Lab(tmp_path).down()
    assert (tmp_path / "hosts").is_dir()
