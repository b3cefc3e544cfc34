"""`tandem dashboard`: what its words mean, and how it ends."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import typer
from tests.unit.observe.dashboard.serving import DEADLINE_S, Run
from typer.testing import CliRunner

from tandem.cli.dashboard import dashboard
from tandem.errors import TandemError


@contextmanager
def started(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command as a process, and the address that it prints."""
    command = [sys.executable, "-m", "tandem", "dashboard", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert line.startswith("Dashboard at http://")
            yield process, line.split()[-1]
        finally:
            process.kill()


def test_it_prints_its_address_and_ctrl_c_ends_it_with_a_stream_open(tmp_path: Path) -> None:
    Run(tmp_path / "run")
    with started(str(tmp_path), "--port", "0") as (process, address):
        with (
            httpx.Client(base_url=address, timeout=DEADLINE_S) as client,
            client.stream("GET", "/api/runs/run/stream?figures=losses") as stream,
        ):
            lines = stream.iter_lines()
            assert "event: state" in lines
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)
            assert list(lines)[-1] == ""
        assert process.wait(DEADLINE_S) == 0
        assert process.stderr is not None
        assert process.stderr.read().endswith("Stopped.\n")


def test_elsewhere_than_on_this_machine_a_token_is_made_and_printed_once(tmp_path: Path) -> None:
    with started(str(tmp_path), "--host", "0.0.0.0", "--port", "0") as (_, printed):
        address, _, token = printed.partition("?token=")
        assert len(token) >= 32
        here = f"http://127.0.0.1:{urlsplit(address).port}/"
        assert httpx.get(f"{here}api/runs").status_code == 401
        assert httpx.get(f"{here}api/runs", headers={"Authorization": f"Bearer {token}"}).json() == {
            "runs": []
        }


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere"], "There is no folder nowhere"),
        ([".", "--host", "no such host"], "--host"),
        ([".", "--token-file", "nowhere"], "nowhere"),
        ([".", "--token-file", "/dev/null"], "/dev/null is not a file"),
        ([".", "--allow-host", "https://example.org"], "not the name of a host"),
    ],
)
def test_what_cannot_be_shown_is_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    app.command()(dashboard)
    result = CliRunner().invoke(app, ["--port", "0", *words])
    assert isinstance(result.exception, TandemError | OSError)
    assert says in str(result.exception)


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(dashboard)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(app, [str(tmp_path), "--port", str(port)])
    assert isinstance(result.exception, TandemError)
    assert f"Cannot listen on 127.0.0.1 port {port}" in str(result.exception)
