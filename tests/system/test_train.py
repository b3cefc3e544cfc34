"""`tandem train` and `tandem resume` as a user types them, with real workers: stopped, killed, and told bad things."""

import os
import select
import shutil
import signal

import pytest
from tests.system.work import ENDLESS, SAVED_EVERY, STEPS, Folder, send, wait_until

from tandem.runlog.event import StopAsked, TrainingStarted, WorkersLost
from tandem.runlog.reader import read_records

pytestmark = pytest.mark.xdist_group("train")


def test_after_a_killed_worker_and_ctrl_c_the_same_command_goes_on_exactly(
    folder: Folder, undisturbed: list[bytes]
) -> None:
    words = ("train", "micro.yaml", "--run", "stopped", "--workers", "2")
    with folder.running(*words) as process:
        wait_until(folder.saved("stopped", SAVED_EVERY).exists, process)
        before = set(folder.workers("stopped"))
        os.kill(max(before), signal.SIGKILL)
        wait_until(lambda: len(set(folder.workers("stopped")) - before) >= 2, process)
        kept = len(folder.all_saved("stopped"))
        wait_until(lambda: len(folder.all_saved("stopped")) > kept, process)
        os.killpg(process.pid, signal.SIGINT)
        printed, complaint = process.communicate()
    assert process.returncode == 130, complaint
    assert not folder.workers("stopped")
    assert "killed by SIGKILL" in printed
    assert "Traceback" not in complaint
    assert printed.splitlines()[-1].endswith("tandem resume stopped")
    records = list(read_records(folder.path / "stopped"))
    events = [record.event for record in records]
    assert [event.exit_code for event in events if isinstance(event, WorkersLost)] == [-signal.SIGKILL]
    starts = [event.step for event in events if isinstance(event, TrainingStarted)]
    assert starts[0] == 0
    assert starts[1] >= SAVED_EVERY
    asked = [record for record in records if isinstance(record.event, StopAsked)]
    assert sorted(record.rank or 0 for record in asked) == [0, 1]
    assert "stopped goes on at step" in folder.run(*words).stdout
    assert folder.bits("stopped") == undisturbed


def test_sigterm_saves_too_and_only_one_process_trains_a_run(folder: Folder) -> None:
    words = ("train", "micro.yaml", "--run", "alone", ENDLESS)
    with folder.running(*words) as process:
        wait_until(folder.saved("alone", SAVED_EVERY).exists, process)
        with folder.resting("alone"):
            refused = folder.run(*words, code=1).stderr
        assert f"alone is being made by process {process.pid}" in refused
        assert refused.count("\n") == 1
        process.terminate()
        process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert not folder.workers("alone")
    step = int(folder.all_saved("alone")[-1].name.partition("-")[2])
    assert step > SAVED_EVERY
    assert "alone is at step" in folder.run("resume", "alone", f"train.max_steps={step + 1}").stdout
    assert folder.saved("alone", step + 1).exists()


def test_a_killed_parent_leaves_no_worker(folder: Folder) -> None:
    with folder.running("train", "micro.yaml", "--run", "orphaned", "--workers", "2", ENDLESS) as process:
        wait_until(folder.saved("orphaned", SAVED_EVERY).exists, process)
        workers = [os.pidfd_open(pid) for pid in folder.workers("orphaned")]
        process.kill()
    assert len(workers) == 2
    for worker in workers:
        # Readable when the worker has ended; it is not our child, so that it cannot be waited for otherwise.
        assert select.select([worker], [], [], 30.0)[0]
        os.close(worker)


@pytest.mark.usefixtures("undisturbed")
def test_a_shard_that_was_cut_off_is_one_sentence(folder: Folder) -> None:
    data = folder.path / "cut"
    shutil.copytree(folder.path / "prepared" / "micro", data)
    words = ("train", "micro.yaml", "--run", "torn", "--workers", "2", "data.folder=cut", ENDLESS)
    with folder.running(*words) as process:
        wait_until(folder.saved("torn", SAVED_EVERY).exists, process)
        shard = max((data / "train").glob("*.bin"))
        os.truncate(shard, shard.stat().st_size // 2)
        send(folder.workers("torn"), signal.SIGKILL)
        _, complaint = process.communicate()
    assert process.returncode == 1
    errors = [line for line in complaint.splitlines() if line.startswith("error: ")]
    assert errors == complaint.splitlines()[-1:]
    assert shard.name in errors[0]
    assert "Traceback" not in complaint


def test_a_run_goes_on_with_what_it_began_with(folder: Folder, undisturbed: list[bytes]) -> None:
    complaint = folder.run("train", "micro.yaml", "--run", "whole", "model.width=64", code=1).stderr
    assert "model.width" in complaint
    assert "--run" in complaint
    assert "tandem resume whole" in complaint
    assert "model.width" in folder.run("resume", "whole", "model.width=64", code=1).stderr
    assert "no run in nothing" in folder.run("resume", "nothing", code=1).stderr
    assert folder.bits("whole") == undisturbed


def test_a_damaged_newest_checkpoint_is_said_and_passed_over(
    folder: Folder, undisturbed: list[bytes]
) -> None:
    shutil.copytree(folder.path / "whole", folder.path / "damaged")
    file = folder.saved("damaged", STEPS) / "state.json"
    content = file.read_bytes()
    file.write_bytes(b"\xff\xff\xff" + content[3:])
    printed = folder.run("resume", "damaged").stdout
    assert "state.json is damaged" in printed
    assert f"damaged is at step {STEPS}" in printed
    assert folder.bits("damaged") == undisturbed
    assert (folder.path / "damaged" / "checkpoints" / f"step-{STEPS:08d}.rejected").is_dir()


def test_no_place_for_the_log_stops_nothing(folder: Folder) -> None:
    (folder.path / "mute").mkdir()
    (folder.path / "mute" / "log").write_text("a file where the log should be")
    printed = folder.run("train", "micro.yaml", "--run", "mute", "train.max_steps=20").stdout
    assert "mute is at step 20" in printed
    assert folder.saved("mute", 20).is_dir()


def test_data_is_not_changed_under_a_run(folder: Folder) -> None:
    with folder.running("train", "micro.yaml", "--run", "first", ENDLESS) as process:
        wait_until(folder.saved("first", SAVED_EVERY).exists, process)
        with folder.resting("first"):
            other = folder.run("train", "micro.yaml", "subword.vocabulary=640", "--run", "second", code=1)
        process.terminate()
        process.communicate()
    assert "is in use by process" in other.stderr
    assert not (folder.path / "second" / "checkpoints").exists()
