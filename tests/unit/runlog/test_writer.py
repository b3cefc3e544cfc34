"""The writer that never waits and never raises."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Event as Signal
from threading import Thread

from tandem.runlog import writer
from tandem.runlog.event import DataPrepared, Event, EventsDropped, RunFinished, StageStarted
from tandem.runlog.logfile import LogFile
from tandem.runlog.reader import ReadReport, read_records
from tandem.runlog.record import Record
from tandem.runlog.writer import FileLog, NullLog, open_host_log, open_rank_log


def events(run: Path) -> list[Event]:
    return [record.event for record in read_records(run)]


def stages(count: int) -> list[Event]:
    return [StageStarted(stage=str(number)) for number in range(count)]


def run_python(script: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False
    )


def test_what_is_logged_is_read_back_in_order_with_numbers_and_times(tmp_path: Path) -> None:
    log = open_rank_log(tmp_path, 3)
    for event in stages(2500):
        log.log(event)
    log.close()
    records = list(read_records(tmp_path))
    assert [record.event for record in records] == stages(2500)
    assert [record.sequence for record in records] == list(range(2500))
    assert {record.rank for record in records} == {3}
    assert [record.time_ns for record in records] == sorted(record.time_ns for record in records)


def test_a_host_log_names_the_host(tmp_path: Path) -> None:
    log = open_host_log(tmp_path, "alpha")
    log.log(RunFinished(reason="done"))
    log.close()
    (record,) = read_records(tmp_path)
    assert (record.rank, record.host) == (None, "alpha")


def test_a_restarted_run_goes_on_in_the_same_file_with_the_next_number(tmp_path: Path) -> None:
    for _ in range(2):
        log = open_rank_log(tmp_path, 0)
        log.log(RunFinished(reason="done"))
        log.close()
    assert [record.sequence for record in read_records(tmp_path)] == [0, 1]


def test_closing_twice_and_logging_after_the_end_are_harmless(tmp_path: Path) -> None:
    log = open_rank_log(tmp_path, 0)
    log.log(RunFinished(reason="done"))
    log.close()
    log.close()
    log.log(RunFinished(reason="late"))
    assert events(tmp_path) == [RunFinished(reason="done")]


def test_nobody_needs_no_file() -> None:
    log: writer.RunLog = NullLog()
    log.log(RunFinished(reason="done"))
    log.close()


def test_a_value_that_json_cannot_hold_is_dropped_and_the_count_is_logged(tmp_path: Path) -> None:
    log = open_rank_log(tmp_path, 0)
    log.log(DataPrepared(card={"a": object()}))  # type: ignore[dict-item]
    log.log(RunFinished(reason="done"))
    log.close()
    first, second = events(tmp_path)
    assert first == RunFinished(reason="done")
    assert isinstance(second, EventsDropped)
    assert second.count == 1


class Stuck(LogFile):
    """A file on a disk that hangs until it is let go."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.reached, self.let_go = Signal(), Signal()

    def append(self, lines: Sequence[bytes]) -> int:
        self.reached.set()
        self.let_go.wait()
        return super().append(lines)


def test_a_disk_that_hangs_never_blocks_and_what_overflows_is_counted_and_logged(tmp_path: Path) -> None:
    file = Stuck(tmp_path / "log/rank-00000.jsonl")
    log = FileLog(file, rank=0)
    sent = writer._QUEUED + writer._BATCH + 500
    log.log(StageStarted(stage="first"))
    file.reached.wait()
    for event in stages(sent):
        log.log(event)
    file.let_go.set()
    log.close()
    found = events(tmp_path)
    dropped = [event for event in found if isinstance(event, EventsDropped)]
    assert sum(event.count for event in dropped) == sent - writer._QUEUED
    assert len(found) == 1 + writer._QUEUED + len(dropped)
    assert len(dropped) > 0


def test_a_disk_that_refuses_is_counted_until_it_takes_lines_again(tmp_path: Path) -> None:
    refused = Signal()

    class Refusing(LogFile):
        def append(self, lines: Sequence[bytes]) -> int:
            whole = super().append(lines)
            if not whole:
                refused.set()
            return whole

    (tmp_path / "log").write_text("a file where the folder should be")
    log = FileLog(Refusing(tmp_path / "log/rank-00000.jsonl"), rank=0)
    log.log(StageStarted(stage="lost"))
    refused.wait()
    refused.clear()
    refused.wait()
    (tmp_path / "log").unlink()
    log.log(StageStarted(stage="kept"))
    log.close()
    first, second = events(tmp_path)
    assert isinstance(first, EventsDropped)
    assert first.count == 1
    assert second == StageStarted(stage="kept")


def test_many_threads_may_log_at_once(tmp_path: Path) -> None:
    log = open_rank_log(tmp_path, 0)

    def work() -> None:
        for event in stages(500):
            log.log(event)

    threads = [Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    assert len(events(tmp_path)) == 4000


def test_a_process_that_forgets_to_close_still_writes_what_it_logged(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from tandem.runlog.event import RunFinished
from tandem.runlog.writer import open_rank_log
open_rank_log(Path(sys.argv[1]), 0).log(RunFinished(reason="forgot"))
"""
    assert run_python(script, tmp_path).returncode == 0
    assert events(tmp_path) == [RunFinished(reason="forgot")]


def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    script = """
import os, sys, warnings
from pathlib import Path
from tandem.runlog.event import RunFinished
from tandem.runlog.writer import open_rank_log
warnings.simplefilter("ignore")
log = open_rank_log(Path(sys.argv[1]), 0)
if os.fork() == 0:
    log.log(RunFinished(reason="child"))
    log.close()
    sys.exit()
os.wait()
log.log(RunFinished(reason="parent"))
log.close()
"""
    assert run_python(script, tmp_path).returncode == 0
    assert events(tmp_path) == [RunFinished(reason="parent")]


def test_a_signal_handler_may_log_while_its_thread_is_logging(tmp_path: Path) -> None:
    script = """
import signal, sys
from pathlib import Path
from tandem.runlog.event import RunFinished, StageStarted
from tandem.runlog.writer import open_rank_log
log = open_rank_log(Path(sys.argv[1]), 0)
caught = []
def handle(*_):
    log.log(RunFinished(reason="signal"))
    caught.append(1)
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
while len(caught) < 200:
    log.log(StageStarted(stage="busy"))
signal.setitimer(signal.ITIMER_REAL, 0)
log.close()
"""
    assert run_python(script, tmp_path).returncode == 0
    assert RunFinished(reason="signal") in events(tmp_path)


KILLED = """
import sys
from pathlib import Path
from tandem.runlog.event import StageStarted
from tandem.runlog.writer import open_rank_log
log = open_rank_log(Path(sys.argv[1]), 0)
number = 0
while True:
    log.log(StageStarted(stage=str(number)))
    number += 1
    if number % 200 == 0:
        print(number, flush=True)
"""


def test_a_writer_killed_in_the_midst_of_writing_leaves_a_log_that_reads_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "log/rank-00000.jsonl"
    with subprocess.Popen([sys.executable, "-c", KILLED, tmp_path], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        while not path.exists() or path.stat().st_size < 100_000:
            child.stdout.readline()
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    with path.open("ab") as file:
        file.write(b'{"schema":1,"time_ns":17')
    before = list(read_records(tmp_path))
    log = open_rank_log(tmp_path, 0)
    log.log(RunFinished(reason="resumed"))
    log.close()
    report = ReadReport()
    after: list[Record] = list(read_records(tmp_path, report))
    assert after[:-1] == before
    assert after[-1].event == RunFinished(reason="resumed")
    assert [record.sequence for record in after] == list(range(len(after)))
    assert (report.damaged, report.unfinished) == (1, 0)


def test_the_descriptor_is_not_left_open(tmp_path: Path) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    log = open_rank_log(tmp_path, 0)
    log.log(RunFinished(reason="done"))
    log.close()
    assert set(Path("/proc/self/fd").iterdir()) == before
