import shlex
import sys
from pathlib import Path

import pytest

from tandem.lab.entry import connecting, inside, wiring


def test_a_command_keeps_its_words_behind_the_host() -> None:
    words = inside(Path("/a lab"), "h1", ["sh", "-c", "x; y"], cwd=Path("/b"))
    assert words[1:] == ["-P", "-m", "tandem.lab.inside", "/a lab", "h1", "/b", "", "sh", "-c", "x; y"]


def test_a_delay_keeps_every_digit() -> None:
    words = wiring("tandem-1-switch", ("h1", "h1-a"), delay_s=0.1 + 0.2, log=Path("/l"))
    assert float(words[-2]) == 0.1 + 0.2


def test_odd_paths_survive_the_shell_and_the_percent_signs_of_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/odd %h $(x) 'path/python")
    value = connecting("tandem-1-switch")
    expanded = value.replace("%%", "\0").replace("%h", "10.1.2.3").replace("%p", "22").replace("\0", "%")
    assert shlex.split(expanded)[0] == "/odd %h $(x) 'path/python"
    assert shlex.split(expanded)[-3:] == ["tandem-1-switch", "10.1.2.3", "22"]
