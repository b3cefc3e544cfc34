"""`tandem watch` in a real terminal."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.terminal import Terminal
from tests.system.work import SAVED_EVERY, Folder, wait_until
from tests.unit.observe.story import Teller, finished, training, write_log
from tests.unit.observe.watch.host_story import sampling, write_samples

from tandem.runlog.event import RunFinished
from tandem.runlog.layout import RunLayout

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="needs tmux, which gives a real terminal"
)

TANDEM = str(Path(sys.executable).with_name("tandem"))
HOUR_S = 3_600
SECOND = 1_000_000_000


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.close()


def write_live(run: Path) -> Teller:
    """A run that has told of all that it will do in the next hour, so that it is at work however slow the test is."""
    teller = Teller(time.time_ns() + HOUR_S * SECOND)
    write_log(run, list(training(teller, steps=250, every=100)))
    for host in ("h1", "h2", "h3"):
        write_samples(run, list(sampling(host, seconds=60, start_ns=teller.time_ns)))
    return teller


def fits(text: str, *, width: int, gpus: str) -> bool:
    """Whether the display is drawn for this width: its first rows go to the edge."""
    lines = text.splitlines()
    return len(lines) > 1 and all(len(line) == width for line in lines[:2]) and gpus in text


def test_a_live_run_is_shown_in_any_size_and_left_clean(terminal: Terminal, tmp_path: Path) -> None:
    teller = write_live(tmp_path / "first")
    terminal.run(f"{TANDEM} watch first; echo left with $?")
    small = terminal.until(lambda text: fits(text, width=80, gpus="4 GPUs"))
    assert small.startswith("first · training")
    assert "step 250 of 1,000" in small
    assert all(f"\n{host}  4 GPUs" in small for host in ("h1", "h2", "h3"))
    assert "evaluated at" in small

    terminal.resize(200, 50)
    large = terminal.until(lambda text: fits(text, width=200, gpus="gpu3"))
    assert large.count("gpu0") == 3
    assert large.count("evaluated at") == 1
    terminal.resize(80, 24)
    assert terminal.until(lambda text: fits(text, width=80, gpus="4 GPUs")) == small

    write_log(tmp_path / "first", [teller.step(251)])
    terminal.until(lambda text: "step 251 of 1,000" in text)
    log = RunLayout(tmp_path / "first").rank_log(0).read_bytes()
    terminal.press("C-c")
    left = terminal.until(lambda text: "left with 0" in text)
    assert re.sub(r"\s+", "", left).endswith("leftwith0$")
    assert "Traceback" not in left
    assert "evaluated at" not in left
    assert terminal.is_set("cursor_flag")
    assert not terminal.is_set("alternate_on")
    assert RunLayout(tmp_path / "first").rank_log(0).read_bytes() == log


def test_a_finished_run_is_shown_once_and_plainly_where_it_is_piped(
    terminal: Terminal, tmp_path: Path
) -> None:
    teller = Teller()
    records = list(training(teller, steps=100, every=50))
    end = [teller.tell(finished(100)), teller.tell(RunFinished(reason="completed"))]
    write_log(tmp_path / "first", [*records, *end])
    terminal.run(f"{TANDEM} watch first; echo left with $?")
    terminal.until(lambda text: "left with 0" in text)
    shown = terminal.all_text()
    assert shown.count("first · finished: reached 100 steps") == 1
    assert shown.count("evaluated at") == 1

    terminal.run(f"clear; {TANDEM} watch first > lines.txt; echo piped with $?")
    terminal.until(lambda text: "piped with 0" in text)
    lines = (tmp_path / "lines.txt").read_text(encoding="utf-8")
    assert "\x1b" not in lines
    assert lines.startswith("training starts: ")
    assert lines.splitlines()[-1].startswith("training finished at step 100")


@pytest.mark.xdist_group("train")
def test_a_run_is_watched_through_a_lost_worker_to_its_end(terminal: Terminal, folder: Folder) -> None:
    words = ("train", "micro.yaml", "--run", "watched", "--workers", "2", "train.max_steps=240")
    with folder.running(*words) as process:
        wait_until(folder.saved("watched", SAVED_EVERY).exists, process)
        watch = [TANDEM, "watch", "watched"]
        with subprocess.Popen(
            [*watch, "--plain"], cwd=folder.path, stdout=subprocess.PIPE, text=True
        ) as plain:
            # Until both look at it, nothing goes on.
            with folder.resting("watched"):
                terminal.run(f"cd {folder.path}; {' '.join(watch)}; echo left with $?")
                terminal.until(lambda text: "watched (micro) · " in text)
                os.kill(max(folder.workers("watched")), signal.SIGKILL)
            terminal.until(lambda text: "training, attempt 2" in text)
            terminal.until(lambda text: "left with 0" in text)
            lines = plain.communicate()[0].splitlines()
        printed, complaint = process.communicate()
    assert process.returncode == 0, complaint
    assert "watched (micro) · finished: reached 240 steps, attempt 2" in terminal.all_text()
    starts = [line for line in lines if line.startswith("training ")]
    assert starts[0].startswith("training starts: ")
    assert "(attempt 2)" in starts[1]
    assert starts[-1].startswith("training finished at step 240: reached 240 steps")
    assert lines.count(starts[-1]) == 1
    assert not [line for line in lines if line.startswith("run finished")]
    assert "attempt 2" in printed
