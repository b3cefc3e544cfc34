import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tandem.errors import TandemError
from tandem.launch.channel import Message
from tandem.launch.doctor import far

ALONE = {"WORLD_SIZE": "1", "RANK": "0", "LOCAL_RANK": "0"}
ASKED = {"gradient_bytes": 4096, "most_bytes": 4096, "device": "cpu", "limit_s": 60.0}


def reduce(**changes: object) -> Any:
    message = {"environment": ALONE, "asked": ASKED, "limit_s": 60.0, **changes}
    return far._DOING["reduce"](message)


def test_a_folder_is_looked_for_in_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "work").mkdir()
    for folder in ("work", "~/work", str(tmp_path / "work")):
        held = far._DOING["disk"]({"folder": folder, "most_bytes": 2**20})
        assert held["folder"] == str(tmp_path / "work")


def test_each_request_renews_the_time_that_the_process_may_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    living: list[object] = []

    class Clock:
        def __init__(self, seconds: float, function: Callable[..., object], words: tuple[int]) -> None:
            self.daemon = False
            assert (seconds, function, words) == (far._LIFE_S, os._exit, (1,))

        def start(self) -> None:
            started.append(self)
            living.append(self)

        def cancel(self) -> None:
            living.remove(self)

    class End:
        def send(self, message: Message) -> None:
            pass

        def messages(self) -> Iterator[Message]:
            for number in range(3):
                assert living == started[-1:]
                yield {"do": "clock", "number": number}

    def leave(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(far, "Timer", Clock)
    monkeypatch.setattr(far, "FarEnd", End)
    with pytest.raises(SystemExit):
        far.main()
    assert len(started) == 4
    assert living == started[-1:]


def test_a_rank_sums_whatever_lies_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tandem.py").write_text("raise RuntimeError('not this one')\n")
    monkeypatch.chdir(tmp_path)
    assert reduce()["summed_bytes"] == 4096


def test_a_rank_that_is_killed_is_not_called_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nread line\nkill -SEGV $$\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(TandemError, match="killed by SIGSEGV"):
        reduce()
    python.write_text("#!/bin/sh\nexec cat\n")
    with pytest.raises(TandemError, match="took more than 0 s"):
        reduce(limit_s=0.1)
