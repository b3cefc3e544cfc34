"""Folders with a manifest under SIGKILL and on a full disk: real kills, real refusals by the kernel."""

import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tandem.artefact import building, read_manifest, write_atomic
from tandem.errors import TandemError


def make(folder: Path, *, text: str) -> None:
    with building(folder, kind="shards", version=1, fingerprint=text[:3]) as build:
        (build.path / "part.bin").write_text(text)
        build.facts = {}


KILL_EVERYWHERE = """
import os, signal, sys
from pathlib import Path
from tandem.artefact import building, read_manifest, write_atomic

root, calls = Path(sys.argv[1]), 0
STEPS = ["open", "pwrite", "truncate", "fsync", "mkdir", "rename", "replace", "unlink", "rmdir"]

def make(mark):
    with building(root / "set", kind="shards", version=1, fingerprint=mark) as build:
        for number in range(2):
            if not (build.path / f"part-{number}").exists():
                write_atomic(build.path / f"part-{number}", mark.encode() * 10)
        build.facts = {"mark": mark}

def arm(fatal):
    def armed(real):
        def step(*arguments, **options):
            global calls
            calls += 1
            if calls == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)
        return step
    for name in STEPS:
        setattr(os, name, armed(getattr(os, name)))

make("a")
new = root / "set"
for fatal in range(1, 1000):
    child = os.fork()
    if child == 0:
        arm(fatal)
        make("b")
        os._exit(0)
    done = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    found = read_manifest(root / "set", kind="shards", version=1)
    held = {(root / "set" / name).read_bytes() for name in found.files}
    assert len(found.files) == 2 and held == {found.fingerprint.encode() * 10}, (fatal, found)
    make("b")
    assert sorted(p.name for p in root.iterdir()) == ["set"], list(root.iterdir())
    snapshot = {p.name: p.read_bytes() for p in (root / "set").iterdir()}
    assert fatal == 1 or snapshot == before, fatal
    before = snapshot
    if done:
        print(fatal)
        break
    make("a")
"""


def test_sigkill_at_any_step_leaves_a_whole_folder_and_the_next_build_ends_the_same(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILL_EVERYWHERE, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 25


def test_a_full_disk_leaves_the_old_file_and_no_scratch(tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    write_atomic(path, b"old")
    with pytest.raises(TandemError, match=r"Cannot write .*card\.json: File too large; make room"):
        _with_small_files(lambda: write_atomic(path, b"x" * 100_000))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_in_a_build_is_told_and_keeps_the_old_folder(tmp_path: Path) -> None:
    make(tmp_path / "set", text="old")
    with pytest.raises(TandemError, match=r"Cannot write .*set: File too large; make room"):
        _with_small_files(lambda: make(tmp_path / "set", text="x" * 100_000))
    assert read_manifest(tmp_path / "set", kind="shards", version=1).fingerprint == "old"
    make(tmp_path / "set", text="new")
    assert (tmp_path / "set/part.bin").read_text() == "new"


def _with_small_files(work: Callable[[], object]) -> None:
    """Run `work` where the kernel refuses to let any file grow past 10 kB, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        work()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


def test_a_worker_that_outlives_a_killed_builder_does_not_keep_the_lock(tmp_path: Path) -> None:
    script = """
import os, signal, sys
from pathlib import Path
from tandem.artefact import building
with building(Path(sys.argv[1]), kind="shards", version=1, fingerprint="a") as build:
    (build.path / "first.bin").write_text("done")
    ready, alive = os.pipe()
    if os.fork() == 0:
        os.write(alive, b"!")
        sys.stdin.read()
        os._exit(0)
    os.read(ready, 1)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    with subprocess.Popen([sys.executable, "-c", script, tmp_path / "set"], stdin=subprocess.PIPE) as child:
        assert child.wait() == -signal.SIGKILL
        with building(tmp_path / "set", kind="shards", version=1, fingerprint="a") as build:
            assert (build.path / "first.bin").read_text() == "done"
            build.facts = {}
