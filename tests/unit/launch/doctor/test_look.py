"""Hosts that are processes of this machine, reached without ssh."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tandem import __version__
from tandem.launch.doctor import bedside
from tandem.launch.doctor.bedside import Bedside, NoAnswerError
from tandem.launch.doctor.facts import OPEN
from tandem.launch.doctor.judge import judge
from tandem.launch.doctor.look import look, look_here
from tandem.launch.hosts import Host
from tandem.launch.ssh import Ssh


class Here(Ssh):
    """Runs here what should run on a host."""

    def command(self, host: str, words: Sequence[str]) -> list[str]:  # noqa: ARG002
        return list(words)


def program(tmp_path: Path, text: str) -> str:
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    return str(script)


def test_a_host_tells_what_it_is(tmp_path: Path) -> None:
    found = look([Host(name="here")], Here(), folder=str(tmp_path), brief=True)
    (host,) = found.hosts
    assert host.machine is not None
    assert host.disk is not None
    assert host.clock is not None
    assert (host.machine.tandem, host.machine.cores >= 1) == (__version__, True)
    assert host.disk.folder == str(tmp_path)
    assert abs(host.clock.offset_s) <= host.clock.uncertainty_s + 0.01
    assert list(tmp_path.iterdir()) == []


def test_this_machine_alone_is_examined_without_any_other_process(tmp_path: Path) -> None:
    lines = judge(look_here(folder=tmp_path))
    assert {"versions", "GPUs", "computer", "disk"} <= {line.what for line in lines}
    assert len({line.host for line in lines}) == 1


def test_a_host_with_an_older_tandem_is_told_with_its_version(tmp_path: Path) -> None:
    old = program(
        tmp_path,
        '[ "$1 $2" = "-P -c" ] && echo 0.0.1 || { echo "No module named tandem.launch" >&2; exit 1; }',
    )
    found = look([Host(name="old")], Here(python=old), folder="work", brief=True)
    (line,) = [line for line in judge(found) if line.verdict != "fine"]
    assert "old has Tandem 0.0.1, which has no doctor" in line.cure


def test_a_host_without_python_is_told_of(tmp_path: Path) -> None:
    missing = program(tmp_path, "exit 127")
    found = look([Host(name="bare")], Here(python=missing), folder="work", brief=True)
    (line,) = judge(found)
    assert (line.host, line.verdict) == ("bare", "broken")
    assert line.cure.startswith("bare has no ")


def test_a_host_that_stays_silent_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bedside, "ARRIVAL_S", 0.1)
    monkeypatch.setattr(bedside, "_LEAVE_S", 0.1)
    silent = Here(python=program(tmp_path, "exec sleep 1000"))
    found = look([Host(name="silent")], silent, folder="work", brief=True)
    assert "silent does not answer within" in found.hosts[0].problem


@pytest.mark.parametrize("what", ["machine", "disk", "nic"])
def test_a_host_whose_tandem_answers_otherwise_is_told_with_its_version(tmp_path: Path, what: str) -> None:
    script = tmp_path / "other.py"
    script.write_text(
        "from tandem.launch.doctor import far\n"
        f"ours = far._DOING['{what}']\n"
        f"far._DOING['{what}'] = lambda asked: {{**ours(asked), 'colour': 'red'}}\n"
        "far.__version__ = '0.0.9'\n"
        "far.main()\n"
    )
    other = Here(python=program(tmp_path, f"exec {sys.executable} -P {script}"))
    found = look([Host(name="other")], other, folder=str(tmp_path), brief=True)
    (line,) = [line for line in judge(found) if line.verdict != "fine"]
    assert (line.host, line.what, line.value) == ("other", "versions", "Tandem 0.0.9")


def test_a_host_that_is_lost_holds_up_nobody_who_waits_for_another_answer(tmp_path: Path) -> None:
    hung = Bedside("hung", Here(python=program(tmp_path, 'echo "{\\"is\\": \\"here\\"}"; exec sleep 1000')))
    try:
        hung.arrive()
        futures = [hung.ask("clock") for _ in range(3)]
        with pytest.raises(NoAnswerError, match="does not answer any more"):
            hung.wait(futures[0], limit_s=0)
        assert all(isinstance(future.exception(timeout=0), NoAnswerError) for future in futures[1:])
    finally:
        hung.leave()


def test_hosts_that_may_meet_anywhere_are_judged_by_a_free_port_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "127.0.0.1 1 127.0.0.1 22")
    hosts = [Host(name="a"), Host(name="b")]
    found = look(hosts, Here(), folder="/tmp", brief=True, port=0, nic="lo")
    assert [(link.fresh_port, link.meeting_port) for link in found.links] == [(OPEN, OPEN)] * 2
    (line,) = [line for line in judge(found) if line.what == "ports"]
    assert line.value == "2 of 2 directions open, on a free port"


def test_an_answer_that_does_not_come_or_cannot_be_given_is_an_error() -> None:
    at = Bedside("here", Here(python=sys.executable))
    try:
        assert at.arrive() > 0
        assert at.is_there()
        with pytest.raises(NoAnswerError, match="here: KeyError"):
            at.get("dance", limit_s=30)
        with pytest.raises(NoAnswerError, match="does not answer any more"):
            at.wait(at.ask("clock"), limit_s=0)
        assert not at.is_there()
    finally:
        at.leave()
    with pytest.raises(NoAnswerError):
        at.get("clock", limit_s=30)


def test_an_interface_that_a_host_does_not_have_is_told_of() -> None:
    found = look([Host(name="here")], Here(), folder="/tmp", brief=True, nic="nowhere0")
    assert "it has no address on nowhere0" in found.hosts[0].problem
