import os
import shutil
import sys
from collections.abc import Iterator

import pytest

from tandem.errors import TandemError
from tandem.lab.command import attempt, check_fitness, perform, program


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    program.cache_clear()
    yield
    program.cache_clear()


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.delenv("TANDEM_LAB_HOST", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name, **_: f"/bin/{name}")


def test_a_fit_machine_is_let_through(root: None) -> None:
    check_fitness()


def test_another_system_is_told_to_use_linux(root: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(TandemError, match="use a Linux machine"):
        check_fitness()


def test_a_user_is_told_to_be_root(root: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(TandemError, match="run it with sudo"):
        check_fitness()


def test_a_host_of_a_lab_makes_no_lab(root: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_LAB_HOST", "h1")
    with pytest.raises(TandemError, match="This is a host of a lab"):
        check_fitness()


@pytest.mark.parametrize(
    ("missing", "package"),
    [("ip", "iproute2"), ("tc", "iproute2"), ("ssh-keygen", "openssh-client"), ("sshd", "openssh-server")],
)
def test_a_missing_program_is_named_with_its_package(
    root: None, monkeypatch: pytest.MonkeyPatch, missing: str, package: str
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, **_: None if name == missing else f"/bin/{name}")
    with pytest.raises(TandemError, match=f"A lab needs {missing}: install it .*apt-get install {package}"):
        check_fitness()


def test_a_program_that_fails_is_quoted_unless_that_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: sys.executable)
    with pytest.raises(TandemError, match=r"`ip -c .* failed \(no such thing\)"):
        perform(["ip", "-c", "import sys; sys.exit('no such thing')"])
    attempt(["ip", "-c", "import sys; sys.exit('no such thing')"])
    assert perform(["ip", "-c", "print('well')"]) == "well\n"
