"""Argument lists for ssh, and what its failures mean."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tandem.errors import TandemError
from tandem.launch.ssh import Ssh

AWKWARD = ["echo", "a b", "$HOME", "it's", "", ";ls", "ü\n"]


def test_the_far_shell_sees_the_words_as_they_were_given() -> None:
    command = Ssh().command("a", AWKWARD)
    assert command[-2] == "a"
    # The far side hands the last word to a shell.
    printed = subprocess.check_output(["sh", "-c", command[-1].replace("echo", "printf '%s|'", 1)], text=True)
    assert printed == "".join(f"{word}|" for word in AWKWARD[1:])


def test_a_host_is_never_read_as_an_option() -> None:
    command = Ssh().command("-oProxyCommand=x", ["true"])
    assert command[command.index("-oProxyCommand=x") - 1] == "--"


def test_nothing_is_asked_and_a_dead_link_is_noticed() -> None:
    command = Ssh().command("a", ["true"])
    assert "BatchMode=yes" in command
    assert any(word.startswith("ServerAliveInterval=") for word in command)
    assert any(word.startswith("ConnectTimeout=") for word in command)


@pytest.mark.skipif(shutil.which("ssh") is None, reason="needs ssh, to read its settings")
def test_a_host_gets_neither_keys_nor_a_way_back_whatever_a_person_s_settings_are(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "ForwardAgent yes\nForwardX11 yes\nForwardX11Trusted yes\nPermitLocalCommand yes\nLocalCommand true\n"
        "Tunnel yes\nLocalForward 8080 localhost:80\nRemoteForward 8081 localhost:81\nControlMaster auto\n"
        "ControlPath ~/x\n"
    )
    program, *words = Ssh(config=config).command("a", ["true"])
    told = subprocess.check_output([program, "-G", *words], text=True).lower().splitlines()
    settings = dict(line.partition(" ")[::2] for line in told)
    names = ("forwardagent", "forwardx11", "forwardx11trusted", "permitlocalcommand", "tunnel")
    assert [settings.get(name) in {"no", "false"} for name in names] == [True] * len(names), settings
    assert settings.get("controlmaster") in {"no", "false"}
    assert settings.get("clearallforwardings") == "yes"


@pytest.mark.parametrize("config", [None, Path("/lab/ssh config")])
def test_settings_of_ones_own_are_passed_on(config: Path | None) -> None:
    command = Ssh(config=config).command("a", ["true"])
    assert ("-F" in command) == (config is not None)
    if config is not None:
        assert command[command.index("-F") + 1] == str(config)


def test_a_module_runs_with_the_python_that_is_named() -> None:
    words = shlex.split(Ssh(python="/opt/py").module("a", "tandem.x", "--y", "1 2")[-1])
    assert words[0] == "/opt/py"
    assert words[-4:] == ["-m", "tandem.x", "--y", "1 2"]
    assert shlex.split(Ssh().module("a", "tandem.x")[-1])[0] == sys.executable


def test_a_machine_without_ssh_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(TandemError, match="There is no ssh on this machine: install it"):
        Ssh().command("a", ["true"])


@pytest.mark.parametrize(
    ("code", "said", "sentence"),
    [
        (255, "warning\nssh: no route\n", "Cannot reach a over ssh (ssh: no route): make `ssh a true` work"),
        (255, "", "Cannot reach a over ssh (no reason given)"),
        (127, "sh: /opt/py: not found", "a has no /opt/py: install Tandem there"),
        (126, "sh: permission", "a has no /opt/py"),
        (
            1,
            "/opt/py: No module named tandem",
            "/opt/py on a has no Tandem (/opt/py: No module named tandem)",
        ),
        (
            3,
            "Traceback\n  x\nKeyError: 1\n\n",
            "Tandem on a ended with exit code 3 (KeyError: 1): look there.",
        ),
    ],
)
def test_a_failure_is_one_sentence(code: int, said: str, sentence: str) -> None:
    told = Ssh(python="/opt/py").explain("a", code, said)
    assert told.startswith(sentence)
    assert told.endswith(".")
    assert "\n" not in told
