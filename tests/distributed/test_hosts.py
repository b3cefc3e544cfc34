"""Hosts that share no disk, played by ranks with folders of their own: checkpoints on each, and the newest is found."""

import os
import platform
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest
import torch
from tests.distributed.ranks import leave, run_ranks

from tandem.checkpoint.layout import step_folder
from tandem.checkpoint.restore import restore
from tandem.checkpoint.store import CheckpointStore, Snapshot
from tandem.config import Recipe, load_recipe
from tandem.data.prepare import prepare
from tandem.errors import TandemError
from tandem.parallel.world import World
from tandem.runlog.event import CheckpointFailed, CheckpointRejected, Event, RunFinished, TrainingStarted
from tandem.runlog.reader import read_records
from tandem.runlog.writer import NullLog
from tandem.train.assemble import Options, train_rank
from tandem.train.disks import find_writers

RECIPE = """
name: hosts
data:
  train:
    - builtin: {pairs: 150}
  valid:
    builtin: {pairs: 8, split: valid}
subword: {vocabulary: 400, max_pieces: 64}
batch: {target_tokens: 512}
model: {preset: tiny, width: 32, heads: 2, encoder_layers: 1, decoder_layers: 1, feed_forward: 64, dropout: 0.1}
optim: {learning_rate: 2.0e-3, warmup_steps: 4, ema_decay: 0.9}
evaluate: {every_steps: 2, probe_pairs: 0, beam: 1, sentences: 4}
checkpoint: {every_steps: 2, keep_last: 2, keep_best: 1}
"""

Fact = TypeVar("Fact", bound=Event)


def recipe_of(folder: Path, *overrides: str) -> Recipe:
    return load_recipe(folder / "recipe.yaml", [f"data.folder={folder / 'data'}", *overrides]).recipe


def become_host(world: World) -> str:
    """Leave the test's own world, to meet again as the only rank of a host."""
    name = f"h{world.rank + 1}"
    platform.node = lambda: name
    os.environ.update(LOCAL_RANK="0", LOCAL_WORLD_SIZE="1", MASTER_PORT=str(world.gather(_free_port())[0]))
    leave(world)
    return name


def train(world: World, folder: Path, run: str, overrides: Sequence[Sequence[str]]) -> str:
    """Train in the host's own folder, with overrides of its own; returns what error there was."""
    rank = world.rank
    name = become_host(world)
    recipe = recipe_of(folder, *overrides[min(rank, len(overrides) - 1)])
    try:
        train_rank(folder / run / name, recipe, Options(device="cpu", batch_tokens=200))
    except TandemError as error:
        return str(error)
    return ""


def train_hosts(folder: Path, run: str, *overrides: Sequence[str], hosts: int = 2) -> list[str]:
    told: list[str] = run_ranks(train, hosts, folder, run, overrides)
    return told


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of six steps on two hosts."""
    folder = tmp_path_factory.mktemp("hosts")
    (folder / "recipe.yaml").write_text(RECIPE)
    prepare(recipe_of(folder), workers=1)
    assert train_hosts(folder, "six", ["train.max_steps=6"]) == ["", ""]
    return folder


def copy_of(folder: Path, name: str) -> Path:
    """The run of six steps once more, to be harmed."""
    shutil.copytree(folder / "six", folder / name)
    return folder / name


def facts(run: Path, kind: type[Fact]) -> list[Fact]:
    return [record.event for record in read_records(run) if isinstance(record.event, kind)]


def files(host: Path) -> dict[str, bytes]:
    """Every byte of a host's checkpoints."""
    home = host / "checkpoints"
    return {
        str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()
    }


def steps(host: Path) -> list[str]:
    return sorted(path.name for path in (host / "checkpoints").iterdir())


def test_every_disk_has_the_same_checkpoints_to_the_byte(folder: Path) -> None:
    run = folder / "six"
    first, second = files(run / "h1"), files(run / "h2")
    assert first == second
    assert {"step-00000004", "step-00000006"} <= set(steps(run / "h1"))
    started = facts(run / "h1", TrainingStarted)[0]
    assert (started.checkpoint_hosts, started.resumed_host) == (("h1", "h2"), "")
    assert not list(run.rglob(".seen-*"))
    kept = sorted(path.relative_to(run / "h1") for path in (run / "h1" / "hypotheses").rglob("*.txt"))
    assert kept
    assert all((run / "h2" / path).is_file() for path in kept)


def test_the_newest_checkpoint_is_taken_from_whichever_host_has_it(folder: Path) -> None:
    """Both rank 0's host and one that was never there before stand on it at once, and learn the same from there."""
    straight, parted = copy_of(folder, "straight"), copy_of(folder, "parted")
    assert train_hosts(folder, "straight", ["train.max_steps=8"]) == ["", ""]
    shutil.rmtree(step_folder(parted / "h1" / "checkpoints", 6))
    assert train_hosts(folder, "parted", ["train.max_steps=8", "checkpoint.keep_last=9"]) == ["", ""]
    started = facts(parted / "h1", TrainingStarted)[-1]
    assert (started.step, started.resumed_from, started.resumed_host) == (6, "step-00000006", "h2")
    assert steps(parted / "h1") == steps(parted / "h2")
    for name in ("model.safetensors", "optimizer.safetensors"):
        learnt = [(run / host / "checkpoints" / "step-00000008" / name).read_bytes() for run, host in
                  ((straight, "h1"), (parted, "h1"), (parted, "h2"))]  # fmt: skip
        assert learnt[0] == learnt[1] == learnt[2]
    assert train_hosts(folder, "parted", ["train.max_steps=8"], hosts=3) == ["", "", ""]
    assert steps(parted / "h3") == ["step-00000008"]
    newest = [step_folder(parted / host / "checkpoints", 8) for host in ("h1", "h3")]
    assert restore(newest[0]).mark == restore(newest[1]).mark


def test_of_two_that_differ_the_lowest_rank_s_wins_and_a_torn_one_is_made_good(folder: Path) -> None:
    run = copy_of(folder, "differing")
    wanted = restore(step_folder(run / "h1" / "checkpoints", 6)).mark
    other = restore(step_folder(run / "h2" / "checkpoints", 6))
    store = CheckpointStore(
        run / "h2" / "checkpoints",
        recipe_text=other.recipe_text,
        subword_folder=folder / "data" / "subword",
        keep_last=9,
        keep_best=1,
        log=NullLog(),
    )
    changed = {name: torch.zeros_like(tensor) for name, tensor in other.model.items()}
    store.save(
        Snapshot(step=6, model=changed, optimizer=other.optimizer, state=other.state, scores=other.scores)
    )
    store.close()
    assert restore(step_folder(run / "h2" / "checkpoints", 6)).mark != wanted
    shutil.copytree(run / "h2", run / "h3")
    torn = step_folder(run / "h3" / "checkpoints", 6) / "model.safetensors"
    torn.write_bytes(torn.read_bytes()[:-1] + b"\x07")
    assert train_hosts(folder, "differing", ["train.max_steps=6"], hosts=3) == ["", "", ""]
    assert facts(run / "h3", CheckpointRejected)[0].folder == "checkpoints/step-00000006"
    marks = {restore(step_folder(run / host / "checkpoints", 6)).mark for host in ("h1", "h2", "h3")}
    assert marks == {wanted}


def spoil(host: Path) -> None:
    """Let the host's disk take no checkpoint."""
    host.mkdir(parents=True)
    (host / "checkpoints").write_text("a file where the folder should be")


@pytest.mark.parametrize("broken", ["h1", "h2"])
def test_a_disk_that_takes_no_checkpoint_is_said_and_stops_nothing(folder: Path, broken: str) -> None:
    run = folder / f"without {broken}"
    spoil(run / broken)
    assert train_hosts(folder, run.name, ["train.max_steps=2"]) == ["", ""]
    assert [fact.step for fact in facts(run / broken, CheckpointFailed)] == [2]
    (good,) = {"h1", "h2"} - {broken}
    assert steps(run / good) == ["step-00000002"]
    assert not facts(run / good, CheckpointFailed)


def test_where_no_disk_takes_a_checkpoint_all_ranks_end_with_the_same_sentence(folder: Path) -> None:
    for host in ("h1", "h2"):
        spoil(folder / "nowhere" / host)
    told = train_hosts(folder, "nowhere", ["train.max_steps=2"])
    assert told[0] == told[1]
    assert told[0].startswith("h1: Cannot write ")


def test_a_host_without_the_data_ends_all_with_one_sentence(folder: Path) -> None:
    missing = folder / "no such data"
    told = train_hosts(
        folder, "missing", ["train.max_steps=2"], ["train.max_steps=2", f"data.folder={missing}"]
    )
    assert told == [f"h2: {missing} holds no finished data: make it with tandem data prepare RECIPE."] * 2
    assert facts(folder / "missing" / "h1", RunFinished)[-1].reason == f"failed: {told[0]}"


def test_checkpoints_of_another_run_on_one_host_end_all_with_one_sentence(folder: Path) -> None:
    run = copy_of(folder, "mixed")
    assert train_hosts(folder, "other", ["train.max_steps=2", "seed=99"]) == ["", ""]
    shutil.rmtree(run / "h2")
    shutil.copytree(folder / "other" / "h2", run / "h2")
    told = train_hosts(folder, "mixed", ["train.max_steps=8"])
    assert told[0] == told[1]
    assert told[0].startswith("h2: ")
    assert "was made with another recipe (different: seed)" in told[0]


def look_for_writers(world: World, runs: Sequence[Path], local_ranks: Sequence[int]) -> tuple[int, ...]:
    world.is_one_host = False  # type: ignore[misc]
    world.local_rank = local_ranks[world.rank]  # type: ignore[misc]
    return find_writers(runs[world.rank], world)


@pytest.mark.parametrize(
    ("names", "local_ranks", "writers"),
    [
        (["a", "a", "a"], [0, 0, 0], (0,)),
        (["a", "b", "b"], [0, 0, 0], (0, 1)),
        (["a", "b", "a"], [0, 0, 0], (0, 1)),
        (["a", "b", "b"], [0, 0, 1], (0, 1)),
        (["a", "a", "b"], [0, 1, 0], (0, 2)),
    ],
)
def test_of_the_hosts_that_see_one_folder_the_first_writes(
    tmp_path: Path, names: list[str], local_ranks: list[int], writers: tuple[int, ...]
) -> None:
    runs = [tmp_path / name for name in names]
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".seen-by-a-run-that-was-killed").touch()
    assert run_ranks(look_for_writers, 3, runs, local_ranks) == [writers] * 3
    assert not list(tmp_path.rglob(".seen-*"))
