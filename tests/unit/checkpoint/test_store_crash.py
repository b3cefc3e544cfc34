"""Saving under SIGKILL and on a full disk: real kills at every step, real refusals by the kernel."""

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.unit.checkpoint.small_run import BuildStore, KeptLog, save_all, snapshot

from tandem.checkpoint.layout import step_folder
from tandem.checkpoint.store import Snapshot
from tandem.errors import TandemError
from tandem.runlog.event import CheckpointFailed

# The store keeps one checkpoint, so that each save also removes one; the second save replaces one of the same step.
KILL_EVERYWHERE = """
import os, signal, sys
from pathlib import Path

import torch
from tandem.checkpoint import tensors
from tandem.checkpoint.listing import list_checkpoints
from tandem.checkpoint.store import CheckpointStore
from tandem.runlog.writer import NullLog
from tests.unit.checkpoint.small_run import RECIPE, snapshot, weights

root, subword, calls = Path(sys.argv[1]), Path(sys.argv[2]), 0
STEPS = ["open", "pwrite", "truncate", "mkdir", "rename", "replace", "unlink", "rmdir"]

def open_store():
    return CheckpointStore(
        root, recipe_text=RECIPE, subword_folder=subword, keep_last=1, keep_best=0, log=NullLog()
    )

def save(*steps):
    store = open_store()
    for step in steps:
        store.save(snapshot(step))
    store.wait()

def arm(fatal):
    def count():
        global calls
        calls += 1
        if calls == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
    def armed(real):
        def step(*arguments, **options):
            # What is only read changes nothing on the disk.
            if real is not whole_open or arguments[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                count()
            return real(*arguments, **options)
        return step
    def chunks(held):
        for chunk in whole_chunks(held):
            count()
            yield chunk
            count()
    whole_chunks, whole_open = tensors._chunks, os.open
    tensors._CHUNK_BYTES = 40
    tensors._chunks = chunks
    for name in STEPS:
        setattr(os, name, armed(getattr(os, name)))
    os.fsync = armed(lambda descriptor: None)  # no kill loses what the kernel has: waiting would prove nothing

child = os.fork()
if child == 0:
    save(1)
    os._exit(0)
os.waitpid(child, 0)
fatal, old = 1, 1
while True:
    child = os.fork()
    if child == 0:
        arm(fatal)
        save(old + 1, old + 1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), (fatal, code)
    found = open_store().newest()
    assert found is not None and found.step in (old, old + 1), (fatal, found and found.step)
    assert all(torch.equal(found.model[name], value) for name, value in weights(found.step).items()), fatal
    assert found.state["step"] == int(found.optimizer["step"]) == found.step
    odd = [path.name for path in root.iterdir() if "." in path.name]
    assert not odd, (fatal, odd)
    assert all(info.is_complete for info in list_checkpoints(root)), fatal
    if code == 0:
        break
    fatal, old = fatal + 1, found.step
print(fatal)
"""


def test_sigkill_at_any_step_of_a_save_leaves_a_whole_newest(
    folder: Path, subword_folder: Path, repository: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILL_EVERYWHERE, folder, subword_folder],
        capture_output=True,
        text=True,
        check=False,
        cwd=repository,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 80


def test_a_full_disk_keeps_the_one_before_and_says_one_sentence(
    build_store: BuildStore, folder: Path, log: KeptLog
) -> None:
    store = build_store(keep_last=1, keep_best=0)
    save_all(store, snapshot(1))
    large = Snapshot(
        step=2, model={"x": torch.zeros(50_000)}, optimizer={}, state={}, scores=snapshot(2).scores
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))  # the kernel refuses, as a full disk would
    try:
        store.save(large)
        with pytest.raises(TandemError) as told:
            store.wait()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    sentence = f"Cannot write {step_folder(folder, 2)}: File too large; make room and try again."
    assert str(told.value) == sentence
    assert log.all(CheckpointFailed) == [CheckpointFailed(step=2, reason=sentence)]
    assert [path.name for path in folder.iterdir()] == ["step-00000001"]
    found = store.newest()
    assert found is not None
    assert found.step == 1
    save_all(store, large)
    assert [path.name for path in folder.iterdir()] == ["step-00000002"]
