"""A run with something of everything in it, and the readers that a stranger's copy of it must not upset."""

import hashlib
import io
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from rich.console import Console
from starlette.testclient import TestClient
from tests.unit.observe.story import START_NS, Teller, checkpoint, finished, started, training
from tests.unit.observe.watch.host_story import sampling
from typer.testing import CliRunner

from tandem.artefact import write_atomic
from tandem.checkpoint.bundle import find_bundle, open_bundle
from tandem.checkpoint.layout import KIND, VERSION, clear_leftovers, step_folder
from tandem.checkpoint.listing import list_checkpoints
from tandem.checkpoint.restore import restore
from tandem.checkpoint.write import Draft, write_checkpoint
from tandem.cli.app import app
from tandem.errors import TandemError
from tandem.files import make_folder
from tandem.launch import far
from tandem.launch.worker import open_output, output_file
from tandem.lock import holding
from tandem.observe.compare.comparison import compare_runs
from tandem.observe.compare.html import comparison_page
from tandem.observe.compare.terminal import render_comparison
from tandem.observe.dashboard.app import Dashboard, build_app
from tandem.observe.dashboard.follower import Follower, Pace
from tandem.observe.dashboard.roster import Roster
from tandem.observe.dashboard.standing import Seen, state_note, summary_note
from tandem.observe.report import keep
from tandem.observe.report.files import document_text, write_files
from tandem.observe.report.gather import read_report
from tandem.observe.report.html import report_page
from tandem.observe.report.markdown import report_markdown
from tandem.observe.report.terminal import render_report
from tandem.observe.series.fold import read_series
from tandem.observe.series.live import LiveSeries
from tandem.observe.sinks.beside import start_beside
from tandem.observe.sinks.bookmark import Bookmark, bookmark_path, write_bookmark
from tandem.observe.sinks.prometheus import metrics_text
from tandem.observe.sinks.tensorboard import TensorBoardSink
from tandem.observe.watch.follow import follow_run
from tandem.observe.watch.opening import open_run
from tandem.runlog.event import EVENTS, RunFinished, RunImported
from tandem.runlog.layout import RunLayout
from tandem.runlog.logfile import LogFile
from tandem.runlog.record import Record, to_line
from tandem.train.validate import Validator
from tandem.web.names import Names

__all__ = [
    "CARD",
    "READERS",
    "WRITERS",
    "leaves",
    "make_run",
    "put",
    "put_checkpoint",
    "remove",
    "run_lines",
    "signed",
]

REPOSITORY = Path(__file__).parents[2]
CHECKPOINT = REPOSITORY / "tests/golden/checkpoint-v1"
RECIPE = "name: strange\ndata:\n  source_language: en\n  target_language: de\n  train:\n    - builtin: {pairs: 10}\n"
CARD = (REPOSITORY / "tests/unit/observe/card.json").read_bytes()


def run_lines(*, imported: bool = False) -> dict[str, list[bytes]]:
    """The lines of each log file: one of every event, and steps between."""
    teller = Teller()
    led: list[Record] = []
    for kind in EVENTS:
        values = {each.name: plain_value(each.name, each.type) for each in fields(kind)}
        if kind is not RunFinished and (imported or kind is not RunImported):
            led.append(teller.tell(kind(**values), after_s=0.01))
    led += [teller.tell(started()), *training(teller, steps=24, every=8), teller.tell(checkpoint(24))]
    led += [teller.tell(finished(24)), teller.tell(RunFinished(reason="completed"))]
    other = Teller()
    return {
        "rank-00000.jsonl": [to_line(each) for each in led],
        "rank-00001.jsonl": [to_line(other.step(number, rank=1)) for number in range(1, 25)],
        "host-alpha.jsonl": [to_line(each) for each in led if "Host" in type(each.event).__name__],
        "samples-alpha.jsonl": [to_line(each) for each in sampling("alpha", seconds=6, gpus=2)],
    }


def plain_value(name: str, kind: Any) -> Any:
    """Something that could stand in a log."""
    if kind in {int, float, str, bool}:
        return kind(1) if kind is not str else "valid" if name == "set" else "alpha"
    text = str(kind)
    if text.startswith("tuple"):
        return ("alpha",) if "str" in text else (1,)
    return json.loads(CARD) if name == "card" else {"alpha": 1}


def make_run(run: Path, *, logs: Mapping[str, list[bytes]]) -> None:
    """Write a run with logs, recipe, data card and a checkpoint."""
    shutil.rmtree(run, ignore_errors=True)
    for name, lines in logs.items():
        put(run / "log" / name, b"".join(lines))
    put(run / "recipe.yaml", RECIPE.encode())
    put(run / "data/card.json", CARD)
    put(run / "hypotheses/step-00000008/valid.txt", b"one\ntwo\n")
    shutil.copytree(CHECKPOINT, run / "checkpoints/step-00004000")


def put_checkpoint(run: Path, text: str) -> None:
    """Add a checkpoint whose manifest holds the facts, and whose state is the state, of this JSON."""
    held = json.loads(text)
    folder = run / "checkpoints/step-00005000"
    folder.mkdir()
    state = json.dumps(held["state"]).encode()
    (folder / "state.json").write_bytes(state)
    files = {"state.json": {"bytes": len(state), "sha256": hashlib.sha256(state).hexdigest()}}
    body = json.dumps(
        {"kind": KIND, "version": VERSION, "fingerprint": "", "facts": held["facts"], "files": files}
    ).encode()
    put(folder / "manifest.json", signed(body))


def signed(body: bytes) -> bytes:
    """A manifest as Tandem writes it around its body."""
    return b'{"sha256": "' + hashlib.sha256(body).hexdigest().encode() + b'", "tandem": ' + body + b"}\n"


def remove(path: Path) -> None:
    """Remove whatever lies there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def put(path: Path, content: bytes) -> None:
    """Write a file, and its folder where there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def leaves(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to every value in a JSON document."""
    if way:
        yield way
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*way, key))


def _runs(run: Path) -> None:
    found = CliRunner().invoke(app, ["runs", str(run.parent), "--json"], catch_exceptions=False)
    listed = {each["name"]: each for each in json.loads(found.stdout)}
    good = listed["good"]
    assert (good["state"], good["step"], good["trouble"]) == ("finished", 24, ""), good
    CliRunner().invoke(app, ["runs", str(run.parent)], catch_exceptions=False)


def _report(run: Path) -> None:
    report = read_report(run)
    assert not report.undrawn, report.undrawn
    report_page(report)
    json.loads(document_text(report))
    report_markdown(report)
    render_report(report, Console(file=io.StringIO(), width=100))


def _watch(run: Path) -> None:
    for console in (
        Console(file=io.StringIO(), force_terminal=True, width=80, height=40),
        Console(file=io.StringIO()),
    ):
        follow_run(run, console=console, until=lambda: True)


def _state(run: Path) -> None:
    state, _ = open_run(run)
    for now_ns in (START_NS, START_NS + 10**13):
        seen = Seen(key="strange", run=run, now_ns=now_ns)
        json.dumps([state_note(state, seen), summary_note(state, seen)], allow_nan=False)
        metrics_text({"strange": state}, now_ns=now_ns, folders={"strange": run})


def _series(run: Path) -> None:
    read_series(run)
    live = LiveSeries(run)
    live.refresh(at_most_bytes=500)
    live.refresh()
    live.series()


def _checkpoints(run: Path) -> None:
    list_checkpoints(RunLayout(run).checkpoints, verify=True)
    CliRunner().invoke(app, ["checkpoints", str(run)], catch_exceptions=False)


def _compare(run: Path) -> None:
    comparison = compare_runs({"strange": read_series(run), "good": read_series(run.parent / "good")})
    comparison_page(comparison)
    render_comparison(comparison, Console(file=io.StringIO(), width=100))
    CliRunner().invoke(app, ["compare", str(run), str(run.parent / "good")], catch_exceptions=False)


def _dashboard(run: Path) -> None:
    board = build_app(Dashboard(Roster([run.parent])), names=Names(is_local=True), token=None)
    with TestClient(board, base_url="http://localhost") as client:
        answer = client.get("/api/runs")
        assert answer.status_code == 200, answer.text
        listed = {each["key"]: each for each in answer.json()["runs"]}
        assert (listed["good"]["doing"], listed["good"]["step"]) == ("finished", 24)
        for path in ("strange/figures/losses", "strange/figures/hosts", "good/figures/losses"):
            answer = client.get(f"/api/runs/{path}")
            assert answer.status_code == 200 if "good" in path else answer.status_code in {200, 404, 503}
        client.get("/api/compare?runs=strange,good")


def _followed(run: Path) -> None:
    """A run that somebody looks at: what cannot be read is told on its page."""
    follower = Follower(run, key="strange", pace=Pace())
    follower.summary()
    follower.series()
    follower.summary()


def _model(run: Path) -> None:
    open_bundle(find_bundle(run))


def _resume(run: Path) -> None:
    for info in list_checkpoints(RunLayout(run).checkpoints):
        restore(info.folder)


def _told(reader: Callable[[Path], None]) -> Callable[[Path], None]:
    """A reader that may say what is wrong, as the command line does in one sentence, and nothing else."""

    def read(run: Path) -> None:
        with suppress(TandemError, OSError):
            reader(run)

    return read


READERS: dict[str, Callable[[Path], None]] = {
    "runs": _runs,
    "dashboard": _dashboard,
    **{
        reader.__name__.strip("_"): _told(reader)
        for reader in (_report, _watch, _state, _series, _checkpoints, _compare, _followed, _model, _resume)
    },
}


def _print(run: Path) -> None:
    with open_output(output_file(RunLayout(run).log, 0)) as file:
        file.write(b"printed\n")


def _log(run: Path) -> None:
    file = LogFile(RunLayout(run).rank_log(0))
    file.open()
    file.append([b"{}\n"])
    file.close()


def _keep_hypotheses(run: Path) -> None:
    Validator._keep(cast(Validator, SimpleNamespace(run=run)), 99, ["a"])


def _submit(run: Path) -> None:
    write_atomic(run / "slurm.sh", b"#!/bin/sh\n")
    write_atomic(run / "recipe.yaml", RECIPE.encode())


def _curves(run: Path) -> None:
    with TensorBoardSink(RunLayout(run).tensorboard) as sink:
        sink.apply(Teller().step(1))


def _forward(run: Path) -> None:
    path = bookmark_path(run, "mlflow")
    make_folder(path.parent)
    with holding(path.with_suffix("")):
        write_bookmark(path, Bookmark(project="", name="", offline=True))


def _note_forwarding(run: Path) -> None:
    start_beside(run, "mlflow", command=["true"]).finish()


def _checkpoint(run: Path) -> None:
    clear_leftovers(RunLayout(run).checkpoints)
    draft = Draft(tensors={}, texts={"recipe.yaml": b"mine"}, facts={})
    write_checkpoint(step_folder(RunLayout(run).checkpoints, 99), draft)


def _disk(run: Path) -> None:
    far._name_disk(RunLayout(run).log)


def _report_files(run: Path) -> None:
    write_files(read_report(run), run)
    keep._note(run, OSError("full"))


WRITERS: list[Callable[[Path], None]] = [
    _told(writer)
    for writer in (
        *(
            _print,
            _log,
            _keep_hypotheses,
            _submit,
            _curves,
            _forward,
            _note_forwarding,
            _checkpoint,
            _report_files,
        ),
        _disk,
    )
]
"""What writes into a run's folder; each may refuse to, in one sentence."""
