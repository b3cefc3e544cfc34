"""The list of checkpoints: marks, sizes, damage; and no torch to read it."""

import json
import math
import os
import subprocess
import sys
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from tests.unit.checkpoint.small_run import BuildStore, save_all, snapshot

from tandem.artefact import JsonValue
from tandem.checkpoint.layout import step_folder
from tandem.checkpoint.listing import list_checkpoints


def test_newest_and_best_are_marked(build_store: BuildStore, folder: Path) -> None:
    runs = [snapshot(1, loss=2.0, bleu=30.0), snapshot(2, loss=1.5, bleu=20.0), snapshot(3)]
    save_all(build_store(), *runs)
    infos = list_checkpoints(folder)
    assert [info.step for info in infos] == [1, 2, 3]
    assert [info.is_newest for info in infos] == [False, False, True]
    assert [info.is_best_loss for info in infos] == [False, True, False]
    assert [info.is_best_bleu for info in infos] == [True, False, False]
    assert [info.scores for info in infos] == [run.scores for run in runs]


def test_sizes_are_of_all_files_and_the_time_is_that_of_the_last(
    build_store: BuildStore, folder: Path
) -> None:
    save_all(build_store(), snapshot(1))
    moment = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    os.utime(step_folder(folder, 1) / "manifest.json", (moment.timestamp(), moment.timestamp()))
    (info,) = list_checkpoints(folder)
    sizes = {path.name: path.stat().st_size for path in step_folder(folder, 1).iterdir()}
    assert (info.files, info.bytes, info.written) == (sizes, sum(sizes.values()), moment)


def test_missing_files_are_damage_at_once_and_changed_bytes_when_verified(
    build_store: BuildStore, folder: Path
) -> None:
    save_all(build_store(), snapshot(1), snapshot(2, loss=1.0), snapshot(3, loss=0.5))
    path = step_folder(folder, 2) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    (step_folder(folder, 3) / "optimizer.safetensors").unlink()
    assert [info.is_complete for info in list_checkpoints(folder)] == [True, True, False]
    assert [info.is_best_loss for info in list_checkpoints(folder)] == [False, True, False]
    verified = list_checkpoints(folder, verify=True)
    assert [info.is_complete for info in verified] == [True, False, False]
    assert [info.is_newest for info in verified] == [True, False, False]
    assert "model.safetensors is damaged" in str(verified[1].damage)


def test_what_was_set_aside_is_listed_last_and_never_marked(build_store: BuildStore, folder: Path) -> None:
    save_all(build_store(), snapshot(1), snapshot(2))
    (step_folder(folder, 2) / "manifest.json").unlink()
    build_store().newest()
    infos = list_checkpoints(folder)
    assert [info.folder.name for info in infos] == ["step-00000001", "step-00000002.rejected"]
    assert [(info.step, info.is_newest, info.is_complete) for info in infos] == [
        (1, True, True),
        (2, False, False),
    ]
    assert infos[1].bytes > 0


def test_other_things_in_the_folder_are_not_listed(build_store: BuildStore, folder: Path) -> None:
    save_all(build_store(), snapshot(1))
    for name in ("step-00000002.partial", "step-00000003.removed", "step-4", "notes"):
        (folder / name).mkdir()
    assert [info.step for info in list_checkpoints(folder)] == [1]
    assert list_checkpoints(folder / "absent") == []


def test_listing_loads_no_torch() -> None:
    program = (
        "import sys, tandem.cli.checkpoints\n"
        "from pathlib import Path\n"
        "from tandem.checkpoint.listing import list_checkpoints\n"
        "list_checkpoints(Path('absent'))\n"
        "assert not {'torch', 'numpy', 'sentencepiece', 'safetensors'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    "scores",
    [
        3,
        None,
        [],
        {"loss": "1"},
        {"loss": [1]},
        {"bleu": 10**400},
        {"loss": True},
        {"bleu": math.nan},
        {"ter": 1},
    ],
)
def test_a_checkpoint_with_odd_scores_is_damaged_and_the_others_are_ranked(
    build_store: BuildStore, folder: Path, scores: JsonValue
) -> None:
    save_all(build_store(), snapshot(1, loss=2.0), snapshot(2, loss=1.0))
    path = step_folder(folder, 2) / "manifest.json"
    held = json.loads(path.read_bytes())["tandem"]
    held["facts"]["scores"] = scores
    body = json.dumps(held).encode()
    path.write_bytes(b'{"sha256": "' + sha256(body).hexdigest().encode() + b'", "tandem": ' + body + b"}\n")
    first, second = list_checkpoints(folder)
    assert first.is_best_loss
    assert "scores in" in (second.damage or "")
