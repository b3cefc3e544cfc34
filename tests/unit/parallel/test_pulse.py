import errno
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tandem.parallel.pulse import PULSE, NullPulse, PulseState, PulseWriter, open_pulse, read_pulse

HAMMER = """
import sys
from pathlib import Path
from tandem.parallel.pulse import PulseWriter

pulse, number = PulseWriter(Path(sys.argv[1])), 0
while True:
    number += 1
    pulse.beat(number)
    with pulse.collective(f"sum {number}"):
        pass
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pulse-00003"


def read(path: Path) -> PulseState:
    state = read_pulse(path)
    assert state is not None
    return state


def test_without_a_word_in_the_environment_nobody_feels_the_pulse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PULSE, raising=False)
    pulse = open_pulse()
    assert isinstance(pulse, NullPulse)
    pulse.beat(3)
    pulse.begin("sum")
    with pulse.waiting("sum"), pulse.collective("barrier"):
        pass


def test_no_place_for_the_file_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PULSE, str(tmp_path / "no such folder" / "pulse"))
    assert isinstance(open_pulse(), NullPulse)


def test_no_room_for_the_file_stops_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_file: int, _offset: int, _length: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    monkeypatch.setenv(PULSE, str(path))
    assert isinstance(open_pulse(), NullPulse)


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="mounting needs root and unshare"
)
def test_on_a_full_disk_in_memory_nobody_feels_the_pulse(tmp_path: Path) -> None:
    told = subprocess.run(
        ["unshare", "--mount", "sh", "-ec", FULL, "sh", str(tmp_path), sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.returncode, told.stdout) == (0, "NullPulse\n"), told.stderr


FULL = """
mount -t tmpfs -o size=4k tmpfs "$1"
head -c 4096 /dev/zero > "$1/other"
export TANDEM_PULSE="$1/pulse"
exec "$2" -c "from tandem.parallel.pulse import open_pulse; print(type(open_pulse()).__name__)"
"""


def test_a_new_process_begins_its_pulse_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PULSE, str(path))
    before = time.monotonic()
    open_pulse().beat(17)
    open_pulse()
    state = read(path)
    assert (state.step, state.begun, state.done, state.collective, state.is_waiting) == (0, 0, 0, "", False)
    assert before <= state.changed_s <= time.monotonic()


def test_a_collective_is_seen_when_it_begins_and_when_it_is_over(path: Path) -> None:
    pulse = PulseWriter(path)
    pulse.beat(5)
    with pulse.collective("share"):
        inside = read(path)
    after = read(path)
    assert (inside.step, inside.begun, inside.done, inside.collective) == (5, 1, 0, "share")
    assert (after.step, after.begun, after.done, after.collective) == (5, 1, 1, "share")
    assert inside.is_waiting
    assert not after.is_waiting
    assert after.changed_s >= inside.changed_s
    assert after.waited_s == pytest.approx(after.changed_s - inside.changed_s)


def test_a_sum_that_goes_on_beside_the_work_is_waited_for_only_at_its_end(path: Path) -> None:
    pulse = PulseWriter(path)
    for number in (1, 2):
        pulse.begin(f"sum of bucket {number}")
    beside = read(path)
    with pulse.waiting("sum of bucket 1"):
        waiting = read(path)
    after = read(path)
    assert (beside.begun, beside.done, beside.is_waiting) == (2, 0, False)
    assert (waiting.begun, waiting.is_waiting, waiting.collective) == (2, True, "sum of bucket 1")
    assert (after.begun, after.done) == (2, 1)


def test_a_collective_that_failed_keeps_its_name_and_is_not_done(path: Path) -> None:
    pulse = PulseWriter(path)
    with pytest.raises(RuntimeError, match="lost"), pulse.collective("gather"):
        raise RuntimeError("lost")
    state = read(path)
    assert (state.begun, state.done, state.is_waiting, state.collective) == (1, 0, True, "gather")


def test_a_beat_alone_changes_the_time_and_nothing_else(path: Path) -> None:
    pulse = PulseWriter(path)
    pulse.beat(9)
    before = read(path)
    pulse.beat()
    after = read(path)
    assert after.step == 9
    assert after.changed_s > before.changed_s


def test_a_long_name_is_cut_without_breaking_a_letter(path: Path) -> None:
    pulse = PulseWriter(path)
    pulse.begin("x" + "ä" * 20)
    assert read(path).collective == "x" + "ä" * 15


@pytest.mark.parametrize("content", [None, b"", b"\0" * 88, b"\7" * 88, b"\1" * 12])
def test_what_is_no_pulse_reads_as_none(path: Path, content: bytes | None) -> None:
    if content is not None:
        path.write_bytes(content)
    assert read_pulse(path) is None


def test_a_write_that_was_cut_short_is_not_read(path: Path) -> None:
    PulseWriter(path).beat(7)
    held = bytearray(path.read_bytes())
    held[8] += 1  # a new write had begun, and its end never came
    path.write_bytes(held)
    assert read_pulse(path) is None


def test_what_is_read_between_two_writes_is_never_a_mixture(path: Path) -> None:
    hammer = subprocess.Popen([sys.executable, "-c", HAMMER, str(path)])
    try:
        steps: set[int] = set()
        deadline = time.monotonic() + 30
        while len(steps) < 500 and time.monotonic() < deadline:
            state = read_pulse(path)
            if state is not None and state.collective:
                number = int(state.collective.removeprefix("sum "))
                assert state.begun == number
                assert number <= state.step <= number + 1
                assert state.done in (number - 1, number)
                steps.add(number)
    finally:
        hammer.kill()
        hammer.wait()
    assert len(steps) == 500


def test_those_who_watch_need_no_torch() -> None:
    program = "import sys, tandem.parallel.pulse, tandem.parallel.route; print('torch' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert told.stdout.strip() == "False"
