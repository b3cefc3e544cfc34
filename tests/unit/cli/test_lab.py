from pathlib import Path

import pytest

from tandem.cli.lab import down, execute, link, show
from tandem.errors import TandemError


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "-x", "a b", "a" * 40])
def test_a_name_that_is_no_folder_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(TandemError, match="cannot name a lab"):
        down(name=name, folder=tmp_path)


def test_a_lab_that_is_not_there_is_an_error_for_those_who_need_one(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="There is no lab class in .*: make it with `tandem lab up`"):
        link("h1", ["down"], name="class", folder=tmp_path)
    with pytest.raises(TandemError, match="There is no lab class in"):
        execute("h1", ["true"], name="class", folder=tmp_path)


def test_removing_and_listing_say_that_there_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    down(folder=tmp_path)
    show(folder=tmp_path)
    assert capsys.readouterr().out == f"There is no lab lab in {tmp_path}.\nThere is no lab in {tmp_path}.\n"
