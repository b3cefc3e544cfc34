"""Runs of strangers, with whatever in them: every reader answers or says one sentence, and other runs are unharmed."""

import json
import os
import re
import tracemalloc
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
import tests.system.strange_run as strange
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.deep import deep_below

from tandem.checkpoint.huggingface import read_model
from tandem.errors import TandemError
from tandem.export.marian_subword import read_vocabulary
from tandem.observe.imports.tensorboard import import_tensorboard
from tandem.translate.open import open_model

# The limit is the watchdog: a pipe that is waited for, or a size that is believed, never ends.
pytestmark = [pytest.mark.timeout(240), pytest.mark.filterwarnings("ignore::RuntimeWarning")]

DEEP = json.loads("[" * 90 + "]" * 90)
ODD: list[Any] = [
    10**400,
    -(10**400),
    2**63,
    2**62,
    2**53,
    -1,
    0,
    1e308,
    -1e308,
    1e-320,
    1e9,
    float("nan"),
    float("inf"),
    "nan",
    "-inf",
    "",
    "\ud800",
    "\x1b[31m\n",
    "a" * 5_000,
    None,
    True,
    [],
    {},
    {"": 1},
    ["a"],
    [1, 2, 3],
    DEEP,
]
LOGS = strange.run_lines()
IMPORTED = strange.run_lines(imported=True)
PLACES = [
    "log",
    "log/rank-00000.jsonl",
    "log/rank-00001.jsonl",
    "log/host-alpha.jsonl",
    "log/samples-alpha.jsonl",
    "recipe.yaml",
    "data/card.json",
    "checkpoints/step-00004000",
    "checkpoints/step-00004000/manifest.json",
    "checkpoints/step-00004000/state.json",
    "checkpoints/step-00004000/recipe.yaml",
    "checkpoints/step-00004000/model.safetensors",
    "checkpoints/step-00004000/subword.model",
]
NAMES = [
    *("log", "log/rank-00000.jsonl", "log/rank-00000.txt", "log/.disk", "log/samples-alpha.jsonl"),
    *(
        "recipe.yaml",
        "slurm.sh",
        "hypotheses",
        "hypotheses/step-00000099",
        "hypotheses/step-00000099/valid.txt",
    ),
    *("report", "report/report.html", "report/report.json", "report/keeper.txt", "tensorboard"),
    *("forward", "forward/mlflow.json", "forward/mlflow.txt", "forward/mlflow", "forward/mlflow.lock"),
    *("checkpoints/step-00000099", "checkpoints/step-00000099.partial", "checkpoints/step-00000099.lock"),
]
"""In a run, what some command writes."""
MERGED = "".join(
    f"a{number}: &a{number} {{<<: [{', '.join([f'*a{number - 1}'] * 9)}]}}\n" for number in range(1, 12)
)
RECIPES = [
    f"a0: &a0 {{x: 1}}\n{MERGED}",
    "[" * 5_000,
    "a: &a [1]\nb: *a\n",
    "data: 5\nname: [1]\n",
    'data: {folder: "\\0"}\n',
    "data: {folder: /dev/zero}\n",
    "data: {folder: " + "9" * 400 + "}\n",
    "optim: {learning_rate: [1]}\nmodel: 1\nbatch: []\ntrain: {seed: {a: 1}}\n",
    "",
    "\0",
    "!!python/object/apply:os.system ['true']\n",
]

several = settings(
    max_examples=6,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(autouse=True)
def without_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read in this process what says that it is long: starting others takes far longer than reading a hole."""
    monkeypatch.setattr("tandem.observe.series.fold._PLAIN_BYTES", 1 << 62)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a good run in it."""
    folder = tmp_path_factory.mktemp("runs")
    strange.make_run(folder / "good", logs=LOGS)
    return folder


def replaced(document: Any, way: tuple[Any, ...], value: Any) -> None:
    for key in way[:-1]:
        document = document[key]
    document[way[-1]] = value


@st.composite
def strange_logs(draw: st.DrawFn) -> dict[str, list[bytes]]:
    """Logs of which a few lines have a value that is replaced by anything, or are anything."""
    # Drawn by a word: hypothesis warns of choices that take pages to write down.
    chosen = LOGS if draw(st.booleans()) else IMPORTED
    logs = {name: list(lines) for name, lines in chosen.items()}
    for _ in range(draw(st.integers(1, 5))):
        name = draw(st.sampled_from([*logs, "rank-00000.jsonl"]))
        at = draw(st.integers(0, len(logs[name]) - 1))
        if draw(st.integers(0, 9)) == 0:
            logs[name][at] = draw(st.binary(max_size=300)) + b"\n"
            continue
        try:
            held = json.loads(logs[name][at])
        except ValueError:
            continue
        replaced(held, draw(st.sampled_from(list(strange.leaves(held)))), draw(st.sampled_from(ODD)))
        logs[name][at] = json.dumps(held, separators=(",", ":")).encode() + b"\n"
    return logs


def read_all(runs: Path, *, apart_from: Collection[str] = ()) -> None:
    for name, reader in strange.READERS.items():
        if name not in apart_from:
            reader(runs / "strange")


@several
@given(logs=strange_logs())
def test_a_log_with_any_value_in_any_place_upsets_nobody(runs: Path, logs: dict[str, list[bytes]]) -> None:
    strange.make_run(runs / "strange", logs=logs)
    read_all(runs)


@pytest.mark.parametrize(
    "changed",
    [
        {"rank": 10**400},
        {"step": 10**400},
        {"step": -5, "duration_s": 10**400},
        {"phases": {"data": 1e8, "forward": 1 - 1e8}},
        {"target_tokens": 1e30, "loss": "nan"},
        {"world_size": 65_536, "ranks": 65_536},
    ],
)
def test_a_number_that_no_run_has_upsets_nobody(runs: Path, changed: dict[str, Any]) -> None:
    logs = {name: list(lines) for name, lines in LOGS.items()}
    for at, line in enumerate(logs["rank-00000.jsonl"]):
        held = json.loads(line)
        held |= {name: value for name, value in changed.items() if name in held}
        held["fields"] |= {name: value for name, value in changed.items() if name in held["fields"]}
        logs["rank-00000.jsonl"][at] = json.dumps(held, separators=(",", ":")).encode() + b"\n"
    strange.make_run(runs / "strange", logs=logs)
    read_all(runs)


@pytest.mark.parametrize("number", [1e308, 0.3, -5, 2**62, 10**400])
def test_a_number_that_is_told_of_an_imported_run_upsets_nobody(runs: Path, number: float) -> None:
    names = ("gpus", "hosts", "reported_parameters", "vocabulary", "pairs_per_gpu", "save_checkpoint_steps")
    logs = {name: list(lines) for name, lines in IMPORTED.items()}
    for at, line in enumerate(logs["rank-00000.jsonl"]):
        held = json.loads(line)
        if held["event"] == "RunImported":
            held["fields"]["facts"] = {**dict.fromkeys(names, 8), "observed_nic_bytes_per_s": 1e9}
            held["fields"]["facts"] |= dict.fromkeys(names, number)
        logs["rank-00000.jsonl"][at] = json.dumps(held, separators=(",", ":")).encode() + b"\n"
    strange.make_run(runs / "strange", logs=logs)
    read_all(runs)


def test_ranks_that_are_claimed_cost_no_memory(runs: Path) -> None:
    logs = {name: list(lines) for name, lines in LOGS.items()}
    logs["rank-00000.jsonl"] = [
        re.sub(rb'"(world_size|ranks)":[0-9]+', rb'"\1":65536', line) for line in logs["rank-00000.jsonl"]
    ]
    strange.make_run(runs / "strange", logs=logs)
    tracemalloc.start()
    try:
        dict(strange.READERS)["report"](runs / "strange")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200 << 20


@pytest.mark.parametrize(
    "place", ["", "log", "checkpoints", "checkpoints/step-00004000", "data", "hypotheses"]
)
def test_a_folder_that_lies_deep_upsets_nobody(runs: Path, place: str) -> None:
    strange.make_run(runs / "strange", logs=LOGS)
    with deep_below(runs / "strange" / place):
        read_all(runs)


def test_what_writes_into_a_run_does_write_where_nothing_is_wrong(runs: Path) -> None:
    run = runs / "strange"
    strange.make_run(run, logs=LOGS)
    for write in strange.WRITERS:
        write(run)
    places = [name for name in NAMES if "." in name and not name.endswith((".lock", ".partial"))]
    assert [name for name in places if not (run / name).is_file()] == []
    assert any((run / "tensorboard").iterdir())
    assert (run / "checkpoints/step-00000099/manifest.json").is_file()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["file", "folder", "nothing"])
def test_nothing_is_written_through_a_link_in_a_run(runs: Path, tmp_path: Path, name: str, kind: str) -> None:
    run, target = runs / "strange", tmp_path / "target"
    strange.make_run(run, logs=LOGS)
    if kind == "folder":
        target.mkdir()
    elif kind == "file":
        target.write_text("mine")
    if os.path.lexists(run / name):
        strange.remove(run / name)
    (run / name).parent.mkdir(parents=True, exist_ok=True)
    (run / name).symlink_to(target)
    for write in strange.WRITERS:
        write(run)
    assert [path.name for path in tmp_path.iterdir()] == ([] if kind == "nothing" else ["target"])
    assert kind != "folder" or not any(target.iterdir())
    assert kind != "file" or target.read_text() == "mine"


@several
@given(
    scores=st.sampled_from(
        [*ODD, {"loss": "1"}, {"loss": [1]}, {"bleu": 10**400}, {"loss": True}, {"ter": 1}]
    ),
    state=st.sampled_from([*ODD, {"best_loss": "a"}, {"best_bleu": 10**400}, {"batches": 3}]),
)
def test_a_checkpoint_with_odd_scores_upsets_nobody(runs: Path, scores: Any, state: Any) -> None:
    text = json.dumps({"facts": {"step": 5000, "scores": scores}, "state": state})
    strange.make_run(runs / "strange", logs=LOGS)
    strange.put_checkpoint(runs / "strange", text)
    read_all(runs)


@several
@given(data=st.data())
def test_a_manifest_with_any_value_in_any_place_upsets_nobody(runs: Path, data: st.DataObject) -> None:
    strange.make_run(runs / "strange", logs=LOGS)
    path = runs / "strange/checkpoints/step-00004000/manifest.json"
    held = json.loads(path.read_bytes())["tandem"]
    replaced(held, data.draw(st.sampled_from(list(strange.leaves(held)))), data.draw(st.sampled_from(ODD)))
    body = json.dumps(held, indent=1).encode()
    path.write_bytes(strange.signed(body))
    read_all(runs)


@several
@given(data=st.data())
def test_a_data_card_with_any_value_in_any_place_upsets_nobody(runs: Path, data: st.DataObject) -> None:
    logs = {name: [line for line in lines if b"DataPrepared" not in line] for name, lines in LOGS.items()}
    strange.make_run(runs / "strange", logs=logs)
    held = json.loads(strange.CARD)
    replaced(held, data.draw(st.sampled_from(list(strange.leaves(held)))), data.draw(st.sampled_from(ODD)))
    (runs / "strange/data/card.json").write_text(json.dumps(held))
    read_all(runs)


@pytest.mark.parametrize("recipe", RECIPES, ids=range(len(RECIPES)))
def test_no_recipe_upsets_anybody(runs: Path, recipe: str) -> None:
    strange.make_run(runs / "strange", logs=LOGS)
    (runs / "strange/recipe.yaml").write_text(recipe)
    read_all(runs)


def kinds(folder: Path) -> Iterator[tuple[str, Callable[[Path], object]]]:
    """What else than a plain file may lie somewhere."""

    def sparse(path: Path) -> None:
        with path.open("wb") as file:
            file.truncate(1 << 40)

    yield "pipe", os.mkfifo
    yield "device", lambda path: path.symlink_to("/dev/zero")
    yield "link", lambda path: path.symlink_to(folder / "elsewhere")
    yield "loop", lambda path: path.symlink_to(path)
    yield "folder", lambda path: path.mkdir()
    yield "sparse", sparse
    yield "deep", lambda path: path.write_text("[" * 200_000)
    yield "bytes", lambda path: path.write_bytes(bytes(range(256)) * 40)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", [each for each, _ in kinds(Path())])
def test_what_is_no_plain_file_upsets_nobody(runs: Path, place: str, kind: str) -> None:
    strange.make_run(runs / "strange", logs=LOGS)
    strange.remove(runs / "strange" / place)
    dict(kinds(runs))[kind](runs / "strange" / place)
    # Neither looks at checkpoints, and both take longest.
    read_all(runs, apart_from={"report", "compare"} if place.startswith("checkpoints") else ())


KINDS = [each for each, _ in kinds(Path())]


@pytest.mark.parametrize("kind", KINDS)
def test_curves_of_strangers_are_imported_or_refused(tmp_path: Path, kind: str) -> None:
    (tmp_path / "curves").mkdir()
    dict(kinds(tmp_path))[kind](tmp_path / "curves/events.out.tfevents.1.alpha")
    with pytest.raises(TandemError):
        import_tensorboard(tmp_path / "curves", tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_a_foreign_model_of_strangers_is_refused(tmp_path: Path, kind: str) -> None:
    for name in ("config.json", "vocab.json", "manifest.json", "model.safetensors"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text('{"model_type": "marian"}')
        if name == "config.json":
            (folder / name).unlink()
        dict(kinds(tmp_path))[kind](folder / name)
        with pytest.raises(TandemError):
            read_model(folder)
        with pytest.raises(TandemError):
            read_vocabulary(folder / name)
        with pytest.raises(TandemError):
            open_model(folder, engine="torch", device="cpu")
