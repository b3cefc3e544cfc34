"""Which runs are shown, and by which key."""

from pathlib import Path

import pytest

from tandem.errors import TandemError
from tandem.observe.dashboard.roster import Roster


def make_run(folder: Path) -> Path:
    (folder / "log").mkdir(parents=True)
    return folder


def test_a_run_and_the_runs_of_a_folder_are_found_by_the_names_of_their_folders(tmp_path: Path) -> None:
    one = make_run(tmp_path / "one")
    b, a = make_run(tmp_path / "runs" / "b"), make_run(tmp_path / "runs" / "a")
    (tmp_path / "runs" / "notes").mkdir()
    (tmp_path / "runs" / "file").touch()
    assert Roster([one, tmp_path / "runs"]).look() == {"one": one, "a": a, "b": b}


def test_runs_of_one_name_are_numbered_and_keep_their_keys(tmp_path: Path) -> None:
    first, second = make_run(tmp_path / "x" / "demo"), make_run(tmp_path / "y" / "demo")
    roster = Roster([first, tmp_path / "y"])
    assert roster.look() == {"demo": first, "demo-2": second}
    third = make_run(tmp_path / "y" / "another")
    assert roster.look() == {"demo": first, "another": third, "demo-2": second}


def test_a_key_is_safe_in_an_address(tmp_path: Path) -> None:
    make_run(tmp_path / "a b&c?d#e%")
    make_run(tmp_path / "größe")
    assert list(Roster([tmp_path]).look()) == ["a_b_c_d_e_", "größe"]


def test_one_run_is_there_once_however_often_it_is_named(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    assert Roster([run, tmp_path, tmp_path]).look() == {"run": run}


def test_links_that_lead_out_of_a_folder_are_not_followed(tmp_path: Path) -> None:
    outside = make_run(tmp_path / "outside")
    runs = tmp_path / "runs"
    inside = make_run(runs / "inside")
    (runs / "link").symlink_to(outside)
    (runs / "half").mkdir()
    (runs / "half" / "log").symlink_to(outside / "log")
    (runs / "loop").symlink_to(runs / "loop")
    assert Roster([runs]).look() == {"inside": inside}


def test_runs_that_come_and_go_are_seen(tmp_path: Path) -> None:
    roster = Roster([tmp_path])
    assert roster.look() == {}
    run = make_run(tmp_path / "run")
    assert roster.look() == {"run": run}
    (run / "log").rmdir()
    assert roster.look() == {}


def test_a_place_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="There is no folder .*nowhere: name a run, or a folder of runs"):
        Roster([tmp_path / "nowhere"])


def test_a_folder_of_runs_may_hold_a_folder_with_the_name_of_a_part(tmp_path: Path) -> None:
    (make_run(tmp_path / "first") / "log" / "rank-00000.jsonl").touch()
    (tmp_path / "log").mkdir()
    assert list(Roster([tmp_path]).look()) == ["first"]
