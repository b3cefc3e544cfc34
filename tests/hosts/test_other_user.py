"""Another user of the same host neither forges a failure of a rank nor blocks a start."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tandem.launch.first import first_of_host
from tandem.launch.local_socket import private_folder
from tandem.launch.report import Reports

NOBODY = 65_534
# The folder of the tests is closed to others: what is tried here lies beside it.
OPEN = Path("/tmp")

FORGE = """
import json, os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
failure = {"rank": 0, "kind": "sentence", "message": "forged", "time_s": 1.0}
try:
    sender.sendto(json.dumps(failure).encode(), sys.argv[1])
except OSError as error:
    print(type(error).__name__)
else:
    print("sent")
"""


def forge(address: str) -> str:
    command = [sys.executable, "-c", FORGE, address]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stdout.strip()


@pytest.mark.timeout(60)
def test_another_user_cannot_reach_the_place_of_reports() -> None:
    with TemporaryDirectory(dir=OPEN) as folder, Reports(Path(folder)) as reports:
        assert forge(reports.address) == "PermissionError"
        assert not reports.received()


@pytest.mark.timeout(60)
def test_what_another_user_sends_all_the_same_does_not_count() -> None:
    with TemporaryDirectory(dir=OPEN) as folder, Reports(Path(folder)) as reports:
        Path(folder).chmod(0o777)
        Path(reports.address).chmod(0o777)
        assert forge(reports.address) == "sent"
        assert not reports.received()


def test_a_folder_that_another_user_made_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.launch.local_socket.TEMPORARY", tmp_path)
    theirs = tmp_path / "runtime"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, NOBODY, NOBODY)
    assert private_folder({"XDG_RUNTIME_DIR": str(theirs)}) == tmp_path / f"tandem-{os.getuid()}"
    place = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "XDG_RUNTIME_DIR": str(theirs)}
    with first_of_host(place) as is_first:
        assert is_first
