"""Files that connections may be, and hundreds of half-sent requests at both servers as they are started."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from tests.unit.web.serving import DEADLINE_S, HALF, Address, Small

LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
"""
DASHBOARD = """
import sys
from tandem.cli.app import main
sys.argv = ["tandem", "dashboard", ".", "--port", "0"]
main()
"""
SERVE = """
from tests.unit.serve.fake import Fake, served
from tandem.cli.serve import _serve
from tandem.serve.keys import ApiKeys
from tandem.serve.limits import Limits
from tandem.web.listening import listen

with listen("127.0.0.1", 0) as bound:
    _serve([served(Fake())], bound, limits=Limits(), keys=ApiKeys())
"""
RAISED = """
from tandem.web.limits import allow_open_files
print(allow_open_files(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@contextmanager
def started(script: str, folder: Path, *, soft: int, hard: int) -> Iterator[Address]:
    """A server as a process that may open so many files."""
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    with subprocess.Popen(
        [sys.executable, "-c", LIMITED.format(soft=soft, hard=hard) + script],
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment,
    ) as process:
        try:
            assert process.stderr is not None
            port = int(process.stderr.readline().split()[-1].rstrip("/").rpartition(":")[2])
            yield Address(small=Small(), port=port)
        finally:
            process.kill()


@pytest.mark.parametrize("script", [DASHBOARD, SERVE])
@pytest.mark.parametrize(("soft", "hard"), [(256, 4_096), (400, 400)])
def test_others_are_answered_while_a_stranger_sends_hundreds_of_halves(
    tmp_path: Path, script: str, soft: int, hard: int
) -> None:
    with started(script, tmp_path, soft=soft, hard=hard) as address, ExitStack() as stack:
        for _ in range(500):
            stack.enter_context(address.connect(HALF))
        with address.client() as client:
            assert client.get("/healthz").json() == {"status": "ok"}
            assert client.get("/").status_code == 200
        for _ in range(10):
            assert httpx.get(f"http://127.0.0.1:{address.port}/healthz", timeout=DEADLINE_S).is_success


def test_as_many_files_may_be_open_as_the_system_allows_and_a_quarter_are_connections() -> None:
    command = [sys.executable, "-c", LIMITED.format(soft=256, hard=2_000) + RAISED]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told.split() == ["500", "2000", "2000"]
