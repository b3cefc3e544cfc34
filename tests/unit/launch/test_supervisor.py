import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tandem.errors import TandemError
from tandem.launch import agent, local, stall
from tandem.launch.local import LocalCrew
from tandem.launch.supervisor import Supervisor
from tandem.runlog.event import Event, WorkersLost

PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from tandem.errors import TandemError
from tandem.launch.worker import supervised

with supervised():
    rank, folder = int(os.environ["RANK"]), Path(sys.argv[1])

    def starts():
        file = folder / f"starts-{rank}"
        file.open("a").write(".")
        return len(file.read_text())

    def meet(other):
        (folder / f"here-{rank}").touch()
        while not (folder / f"here-{other}").exists():
            time.sleep(0.01)

    def die(number):
        os.kill(os.getpid(), number)

    exec(sys.argv[2])
"""


class Kept:
    """A run log that keeps its events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def log(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "GRACE_S", 0.3)
    monkeypatch.setattr(agent, "LOOK_S", 0.02)


@pytest.fixture
def kept() -> Kept:
    return Kept()


Start = Callable[..., Supervisor]


@pytest.fixture
def start(tmp_path: Path, kept: Kept) -> Start:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)

    def supervisor(
        code: str, *, workers: int = 2, restarts: int = 3, progress: Callable[[], object] = lambda: 0
    ) -> Supervisor:
        command = [sys.executable, str(program), str(tmp_path), code]
        crew = LocalCrew(command, workers=workers, output=tmp_path)
        supervisor = Supervisor(crew, log=kept, restarts=restarts, progress=progress)
        supervisor.start()
        return supervisor

    return supervisor


def printed(folder: Path, rank: int) -> str:
    return (folder / f"rank-{rank:05d}.txt").read_text()


def wait_for(file: Path, supervisor: Supervisor) -> None:
    while not file.exists() and not supervisor.is_done:
        os.sched_yield()


def test_workers_are_ranks_and_what_they_print_is_kept(
    start: Start, tmp_path: Path, kept: Kept, capfd: pytest.CaptureFixture[str]
) -> None:
    code = "import json; names = 'RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'OMP_NUM_THREADS', 'TANDEM_STORE'\n"
    code += "print(json.dumps({name: os.environ[name] for name in names}))"
    supervisor = start(code)
    supervisor.wait()
    assert supervisor.is_done
    said = [json.loads(printed(tmp_path, rank).splitlines()[-1]) for rank in range(2)]
    assert [(each["RANK"], each["WORLD_SIZE"], each["LOCAL_RANK"]) for each in said] == [
        ("0", "2", "0"),
        ("1", "2", "1"),
    ]
    assert all(int(each["OMP_NUM_THREADS"]) >= 1 for each in said)
    assert not kept.events
    assert capfd.readouterr() == ("", "")


def test_what_the_user_says_about_threads_counts(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    start("print(os.environ['OMP_NUM_THREADS'])", workers=1).wait()
    assert printed(tmp_path, 0).endswith("\n7\n")


def test_a_sentence_of_one_rank_is_all_that_is_said(
    start: Start, kept: Kept, capfd: pytest.CaptureFixture[str]
) -> None:
    code = "meet(1 - rank)\nif rank == 1: raise TandemError('The text is torn: mend it.')\nsignal.pause()"
    with pytest.raises(TandemError) as caught:
        start(code).wait()
    assert str(caught.value) == "The text is torn: mend it."
    assert not kept.events
    assert capfd.readouterr() == ("", "")


def test_a_rank_that_lost_its_peer_is_not_the_cause(start: Start) -> None:
    code = "if rank == 1: raise TandemError('No disk.')\nmeet(1)"
    code = code.replace("if rank == 1:", "if rank == 1:\n  (folder / 'here-1').touch();")
    code += "\nraise RuntimeError('Connection closed by peer [127.0.0.1]:1')"
    with pytest.raises(TandemError, match=r"^No disk\.$"):
        start(code).wait()


def test_an_unexpected_error_says_where_its_traceback_is(start: Start, tmp_path: Path) -> None:
    with pytest.raises(TandemError, match=r"Rank 0 failed with KeyError: 'x'.*rank-00000\.txt") as caught:
        start("if rank == 0: {}['x']").wait()
    assert "\n" not in str(caught.value)
    assert "Traceback" in printed(tmp_path, 0)


def test_a_rank_that_ends_without_a_word_is_named(start: Start) -> None:
    with pytest.raises(TandemError, match=r"Rank 1 failed with exit code 7: .*rank-00001\.txt"):
        start("if rank == 1: os._exit(7)").wait()


def test_a_killed_rank_has_all_started_again(start: Start, tmp_path: Path, kept: Kept) -> None:
    supervisor = start(
        "if starts() == 1:\n  meet(1 - rank)\n  die(signal.SIGKILL) if rank == 1 else signal.pause()"
    )
    supervisor.wait()
    assert [(tmp_path / f"starts-{rank}").read_text() for rank in range(2)] == ["..", ".."]
    (lost,) = kept.events
    assert isinstance(lost, WorkersLost)
    assert (lost.attempt, lost.rank, lost.exit_code) == (1, 1, -signal.SIGKILL)
    assert "killed by SIGKILL" in lost.reason
    assert printed(tmp_path, 0).count("started ") == 2


def test_a_lost_connection_alone_has_all_started_again(start: Start, kept: Kept) -> None:
    start("if starts() == 1: raise RuntimeError('Connection reset by peer')").wait()
    assert [type(event) for event in kept.events] == [WorkersLost]


def test_losses_without_progress_are_given_up(start: Start, tmp_path: Path, kept: Kept) -> None:
    with pytest.raises(TandemError, match="Rank 0 was lost, 3 times in a row .*SIGSEGV.*rank-00000"):
        start("starts(); die(signal.SIGSEGV)", workers=1, restarts=2).wait()
    assert (tmp_path / "starts-0").read_text() == "..."
    assert len(kept.events) == 2
    assert "Segmentation fault" in printed(tmp_path, 0)


def test_losses_with_progress_between_them_are_not_in_a_row(start: Start, tmp_path: Path) -> None:
    def progress() -> int:
        file = tmp_path / "starts-0"
        return len(file.read_text()) if file.exists() else 0

    start("if starts() < 5: die(signal.SIGKILL)", workers=1, restarts=1, progress=progress).wait()
    assert progress() == 5


def test_stop_reaches_each_worker_once_and_lets_it_end_well(start: Start, tmp_path: Path, kept: Kept) -> None:
    code = "asked = []\nsignal.signal(signal.SIGTERM, lambda *_: asked.append(print('asked')))\n"
    code += "meet(1 - rank)\nwhile not asked: time.sleep(0.01)"
    supervisor = start(code)
    for rank in range(2):
        wait_for(tmp_path / f"here-{rank}", supervisor)
    supervisor.stop()
    supervisor.stop()
    supervisor.wait()
    assert [printed(tmp_path, rank).count("asked") for rank in range(2)] == [1, 1]
    assert not kept.events


def test_workers_are_out_of_reach_of_the_terminal(start: Start, tmp_path: Path) -> None:
    start("assert os.getsid(0) == os.getpid()", workers=1).wait()


def test_a_stop_before_the_start_starts_nothing(start: Start, tmp_path: Path, kept: Kept) -> None:
    crew = LocalCrew(["false"], workers=1, output=tmp_path)
    supervisor = Supervisor(crew, log=kept, restarts=0, progress=lambda: 0)
    supervisor.stop()
    supervisor.start()
    supervisor.wait()
    assert not list(tmp_path.glob("rank-*"))


def test_workers_that_do_not_listen_are_killed(start: Start, tmp_path: Path, kept: Kept) -> None:
    supervisor = start(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nmeet(1 - rank)\nwhile True: signal.pause()"
    )
    for rank in range(2):
        wait_for(tmp_path / f"here-{rank}", supervisor)
    supervisor.stop()
    supervisor.kill()
    supervisor.wait()
    assert not kept.events


def test_a_failure_while_stopping_is_still_told(start: Start, tmp_path: Path) -> None:
    code = "def full(*_): raise TandemError('The disk is full: make room.')\n"
    code += "signal.signal(signal.SIGTERM, full)\nmeet(rank)\nwhile True: signal.pause()"
    supervisor = start(code, workers=1)
    wait_for(tmp_path / "here-0", supervisor)
    supervisor.stop()
    with pytest.raises(TandemError, match="The disk is full"):
        supervisor.wait()


def test_no_worker_outlives_a_killed_supervisor(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    os.mkfifo(tmp_path / "alive")
    code = "alive = open(folder / 'alive', 'w')\nalive.write('x')\nalive.flush()\nsignal.pause()"
    parent = f"""
import sys
from pathlib import Path
from tandem.launch.local import LocalCrew
from tandem.launch.supervisor import Supervisor
from tandem.runlog.writer import NullLog
here = Path({str(tmp_path)!r})
command = [sys.executable, str(here / "program.py"), str(here), {code!r}]
crew = LocalCrew(command, workers=2, output=here)
supervisor = Supervisor(crew, log=NullLog(), restarts=0, progress=lambda: 0)
supervisor.start()
supervisor.wait()
"""
    with subprocess.Popen([sys.executable, "-c", parent]) as process, (tmp_path / "alive").open() as alive:
        assert alive.read(2) == "xx"
        process.kill()
        # The pipe ends when the last process that holds it is gone.
        assert alive.read() == ""
    assert process.returncode == -signal.SIGKILL


def test_workers_in_which_nothing_moves_any_more_are_ended_and_the_one_that_hangs_is_named(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stall, "SHORTEST_S", 0.5)
    monkeypatch.setattr(local, "LOOK_S", 0.02)
    code = """
from tandem.parallel.pulse import open_pulse
pulse = open_pulse()
for step in range(50):
    pulse.beat(step)
    time.sleep(0.01)
if rank == 1: die(signal.SIGSTOP)
with pulse.collective("barrier"): signal.pause()
"""
    with pytest.raises(TandemError, match=r"^Rank 1 was lost \(nothing moved for .*barrier in step 49\)"):
        start(code, restarts=0).wait()
