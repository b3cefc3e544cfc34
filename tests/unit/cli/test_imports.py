from pathlib import Path

import pytest
from tests.unit.observe.imports.board import write_points
from tests.unit.observe.imports.printing import of, whole

from tandem.cli.imports import openseq2seq, tensorboard
from tandem.errors import TandemError
from tandem.runlog.event import RunImported


def test_a_log_goes_to_a_folder_of_its_name_and_what_is_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("first.log.txt").write_text(whole())
    openseq2seq(
        Path("first.log.txt"),
        nic_rate="220MB/s",
        link="1gbit",
        gpu_utilisation="100",
        start="2020-06-26T15:36",
    )
    facts = of(tmp_path / "runs" / "first", RunImported)[0].facts
    assert facts["observed_nic_bytes_per_s"] == 220e6
    assert facts["observed_link_bits_per_s"] == 1e9
    assert facts["observed_gpu_utilisation"] == 1.0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "runs/first: 6 records of steps 0 to 500, 3 evaluations"
    assert "where the time of a step went" in lines[1]
    assert lines[-1] == "go on with: tandem report runs/first"


def test_curves_that_were_not_used_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_points(
        tmp_path / "board", [(1.0, 1, {"loss": 0.5, **{f"thing-{number:02d}": 1.0 for number in range(14)}})]
    )
    tensorboard(Path("board"), run=Path("there"))
    out = capsys.readouterr().out
    assert "there: 1 records of steps 1 to 1" in out
    assert "curves not used: thing-00, " in out
    assert "thing-11 and 2 more" in out


def test_a_time_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="--start 'noon' is no time: write it as 2020-06-26T15:36:42"):
        openseq2seq(tmp_path / "log", start="noon")
