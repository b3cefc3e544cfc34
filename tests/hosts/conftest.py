"""What all tests on the hosts of a lab share."""

import os
import shutil
import sys
from collections.abc import Iterator

import pytest

from tandem.lab import Lab


@pytest.fixture(scope="session", autouse=True)
def _has_labs() -> None:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("a lab needs root on Linux")
    if not (shutil.which("ip") and shutil.which("sshd", path="/usr/sbin:/sbin:/usr/bin")):
        pytest.skip("a lab needs iproute2 and openssh-server")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Three hosts on links of 1 Gb/s, for modules that have no lab of their own."""
    with Lab.up(tmp_path_factory.mktemp("labs") / "lab", hosts=3, rate="1gbit") as lab:
        yield lab
