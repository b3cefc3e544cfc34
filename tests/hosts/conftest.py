"""What all tests on the hosts of a lab share."""

import os
import shutil
import sys

import pytest


@pytest.fixture(scope="session", autouse=True)
def _has_labs() -> None:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("a lab needs root on Linux")
    if not (shutil.which("ip") and shutil.which("sshd", path="/usr/sbin:/sbin:/usr/bin")):
        pytest.skip("a lab needs iproute2 and openssh-server")
