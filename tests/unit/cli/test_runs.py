"""`tandem runs`: the list, the JSON, and freeing room."""

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.checkpoint.test_prune import save
from tests.unit.observe.story import Teller, finished, training, write_log
from typer.testing import CliRunner

from tandem.checkpoint.prune import Plan, prune
from tandem.cli.runs import app
from tandem.errors import TandemError
from tandem.observe import listing
from tandem.runlog.event import RunFinished


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two runs that ended, the second later."""
    for number, name in enumerate(("first", "second")):
        run = tmp_path / name
        teller = Teller(1_767_225_600_000_000_000 + number * 10**12)
        records = list(training(teller, steps=400))
        write_log(run, [*records, teller.tell(finished(400)), teller.tell(RunFinished(reason="completed"))])
        for step, loss, bleu in ((100, 2.5, 20.0), (200, 1.5, 50.0), (400, 1.9, 30.0)):
            save(run, step, loss=loss, bleu=bleu)
    return tmp_path


def invoke(*words: str | Path) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    if isinstance(result.exception, TandemError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def listed(*words: str | Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(invoke(*words, "--json"))
    return found


def test_runs_are_listed_with_the_last_active_first(folder: Path) -> None:
    assert [each["name"] for each in listed(folder)] == ["second", "first"]
    text = invoke(folder)
    assert text.index("second") < text.index("first")
    assert "finished" in text
    assert "reached 400 steps" in text


def test_the_best_of_checkpoints_counts_beside_that_of_the_log(folder: Path) -> None:
    found = listed(folder)[0]
    assert found["best_bleu"] == {"value": 50.0, "step": 200}
    assert found["best_loss"] == {"value": 1.5, "step": 200}


def test_what_a_checkpoint_knows_of_its_run_counts_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "HEAD_BYTES", 100)
    monkeypatch.setattr(listing, "TAIL_BYTES", 2000)
    assert not listed(folder / "first")[0]["is_best_of_all"]
    assert "*" in invoke(folder / "first")
    newest = folder / "first" / "checkpoints" / "step-00000400"
    (newest / "state.json").write_text(json.dumps({"best_bleu": 77.0, "best_loss": None}))
    found = listed(folder / "first")[0]
    assert found["is_best_of_all"]
    assert found["best_bleu"] == {"value": 77.0, "step": None}


def test_a_damaged_run_is_listed_with_what_is_wrong(folder: Path) -> None:
    (folder / "first" / "checkpoints" / "step-00000100" / "model.safetensors").unlink()
    (folder / "bare").mkdir()
    (folder / "bare" / "recipe.yaml").write_text("name: bare\n")
    troubles = {each["name"]: each["trouble"] for each in listed(folder)}
    assert "step-00000100" in troubles["first"]
    assert troubles["bare"] == "It has no log."
    assert "bare: It has no log." in invoke(folder)


def test_a_folder_without_runs_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="no run in"):
        invoke(tmp_path)
    assert listed(tmp_path) == []
    with pytest.raises(TandemError, match="no run in"):
        invoke("prune", tmp_path)


def test_the_folder_is_runs_where_none_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parent / "runs").symlink_to(folder)
    monkeypatch.chdir(folder.parent)
    assert len(listed()) == 2


def test_pruning_only_says_what_would_go(folder: Path) -> None:
    text = invoke("prune", folder)
    assert "would go  step-00000100" in text
    assert "add --really" in text
    assert (folder / "first" / "checkpoints" / "step-00000100").is_dir()


def test_pruning_really_removes_from_all_runs_of_a_folder(folder: Path) -> None:
    text = invoke("prune", folder, "--really")
    assert "removed   step-00000100" in text
    assert "are free now" in text
    for name in ("first", "second"):
        kept = sorted(path.name for path in (folder / name / "checkpoints").iterdir())
        assert kept == ["step-00000200", "step-00000400"]
    assert "nothing to remove" in invoke("prune", folder)


def test_a_run_that_trains_is_left_alone_and_the_others_are_freed(folder: Path) -> None:
    write_log(folder / "first", [Teller(1_900_000_000_000_000_000).step(401)])
    text = invoke("prune", folder / "first", folder / "second", "--really")
    assert "left alone" in text
    assert (folder / "first" / "checkpoints" / "step-00000100").is_dir()
    assert not (folder / "second" / "checkpoints" / "step-00000100").exists()


def refusing(name: str, reason: OSError) -> Callable[..., Plan]:
    """Prunes, but finds that the disk refuses in one run."""

    def prune_unless(run: Path, **given: Any) -> Plan:
        if run.name == name:
            raise reason
        return prune(run, **given)

    return prune_unless


def test_a_run_whose_disk_refuses_keeps_no_other_from_being_freed_and_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = PermissionError(errno.EACCES, "Permission denied")
    monkeypatch.setattr("tandem.checkpoint.prune.prune", refusing("first", error))
    result = CliRunner().invoke(app, ["prune", str(folder), "--really"])
    assert isinstance(result.exception, TandemError)
    assert "left alone: [Errno 13] Permission denied" in result.stdout
    assert "removed   step-00000100" in result.stdout
    assert not (folder / "second" / "checkpoints" / "step-00000100").exists()


def test_room_is_only_called_free_where_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.checkpoint.prune.remove", lambda _folder: "Operation not permitted")
    result = CliRunner().invoke(app, ["prune", str(folder), "--really"])
    assert isinstance(result.exception, TandemError)
    assert "not gone  step-00000100.removed  (Operation not permitted)" in result.stdout
    assert "\n0 MB are free now." in result.stdout


def test_prepared_data_is_told_of_and_stays(folder: Path) -> None:
    (folder / "first" / "data").mkdir()
    (folder / "first" / "data" / "part.bin").write_bytes(b"0" * 5_000_000)
    assert "prepared data of 5.0 MB, which is not touched" in invoke("prune", folder / "first", "--really")
    assert (folder / "first" / "data" / "part.bin").exists()


def test_a_run_is_not_called_done_before_its_end(tmp_path: Path) -> None:
    write_log(tmp_path / "runs" / "near", list(training(Teller(), steps=999)))
    assert "99 % step 999 of 1,000" in invoke(tmp_path / "runs")


def test_what_is_wrong_with_a_run_steers_no_terminal(folder: Path) -> None:
    odd = folder / "odd\x1b[2J"
    (folder / "first").rename(odd)
    (odd / "checkpoints" / "step-00000100" / "model.safetensors").unlink()
    text = invoke(folder)
    assert "\x1b" not in text
    assert "odd\\x1b[2J: step-00000100" in text
