import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from tests.unit.launch.doctor.findings import DISK, examination, host

from tandem.cli.doctor import doctor
from tandem.launch.doctor.examination import Examination

FULL = "No space left on device"


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Callable[[Examination], None]:
    """Let the examination find this."""

    def put(held: Examination) -> None:
        monkeypatch.setattr("tandem.launch.doctor.look.look_here", lambda **_: held)

    return put


def broken() -> Examination:
    return examination([host("a", disk=replace(DISK, problem=FULL, write_bytes_per_s=float("nan")))])


def test_this_machine_alone_is_examined_without_hosts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    doctor(plain=True)
    out = capsys.readouterr().out
    assert f"free in {tmp_path}" in out
    assert out.splitlines()[-1].endswith("0 broken.")


def test_a_broken_machine_is_a_failure_and_a_poor_one_is_not(found: Callable[[Examination], None]) -> None:
    found(examination([host("a", disk=replace(DISK, write_bytes_per_s=1e6))]))
    doctor()
    found(broken())
    with pytest.raises(typer.Exit) as ended:
        doctor()
    assert ended.value.exit_code == 1


def test_a_table_keeps_to_80_columns_and_ends_with_the_cures(
    found: Callable[[Examination], None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    found(broken())
    with pytest.raises(typer.Exit):
        doctor()
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert f"broken a, disk: Cannot write in /work on a ({FULL})" in " ".join(out.split())


def test_json_holds_lines_and_measurements_and_null_for_what_is_unknown(
    found: Callable[[Examination], None], capsys: pytest.CaptureFixture[str]
) -> None:
    found(broken())
    with pytest.raises(typer.Exit):
        doctor(as_json=True)
    held = json.loads(capsys.readouterr().out)
    assert [line["verdict"] for line in held["lines"]].count("broken") == 1
    assert held["hosts"][0]["disk"]["write_bytes_per_s"] is None


@pytest.mark.parametrize("plain", [True, False])
def test_what_a_host_says_steers_no_terminal(
    found: Callable[[Examination], None], capsys: pytest.CaptureFixture[str], plain: bool
) -> None:
    found(examination([host("a", disk=replace(DISK, problem="odd \x1b[2J", write_bytes_per_s=float("nan")))]))
    with pytest.raises(typer.Exit):
        doctor(plain=plain)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "odd \\x1b[2J" in out
