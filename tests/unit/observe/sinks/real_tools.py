"""A process of its own for each real tool: forwards a run in two parts and a third time, and reads the tool's files.

The libraries start threads and processes, warn, and are slow to import: once, and not inside pytest.
"""

import json
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tandem.errors import TandemError
from tandem.observe.sinks.bookmark import bookmark_path
from tandem.observe.sinks.forward import forward_run
from tandem.observe.sinks.opened import forwarding_to


def forward(tool: str, run: Path) -> None:
    with forwarding_to(tool, run, offline=True) as forwarder:
        forward_run(run, forwarder, until=lambda: True)


def read_wandb(run: Path, number: str) -> dict[str, Any]:
    from wandb.proto.wandb_internal_pb2 import Record  # type: ignore[attr-defined]

    rows, ids = [], [number]
    summary, config = dict[str, Any](), dict[str, Any]()
    for path in sorted(run.glob("forward/wandb/offline-run-*/*.wandb")):
        for data in _wandb_records(path.read_bytes()):
            record = Record()
            record.ParseFromString(data)
            rows += [_items(record.history.item)] if record.HasField("history") else []
            summary |= _items(record.summary.update)
            config |= _items(record.run.config.update)
            ids += [record.run.run_id] if record.HasField("run") else []
    curves: dict[str, list[list[float]]] = {}
    for row in rows:
        for name, value in row.items():
            curves.setdefault(name, []).append([row["_step"], value, row["_timestamp"]])
    tables = sorted(run.glob("forward/wandb/offline-run-*/files/media/table/translations_*"))
    stats = [path for path in run.glob("forward/wandb/offline-run-*/files/*") if path.is_file()]
    return {
        "curves": curves,
        "config": config["name"],
        "facts": summary,
        "tables": len(tables),
        "table": json.loads(tables[-1].read_text())["data"],
        "files": [path.name for path in stats],
        "ids": ids,
    }


def _wandb_records(data: bytes) -> Iterator[bytes]:
    """Its file is a LevelDB log: blocks of 32 KiB with pieces of records; wandb has no reader in Python any more."""
    assert data.startswith(b":W&B")
    place, held = 7, b""
    while place < len(data):
        left = 32_768 - place % 32_768
        if left < 7:
            place += left
            continue
        length, kind = struct.unpack_from("<HB", data, place + 4)
        held += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):
            yield held
            held = b""


def _items(items: Any) -> dict[str, Any]:
    return {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}


def read_mlflow(run: Path, number: str) -> dict[str, Any]:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{run.resolve()}/forward/mlflow.db")
    held = client.get_run(number)
    curves = {
        name: [
            [each.step, each.value, each.timestamp / 1e3] for each in client.get_metric_history(number, name)
        ]
        for name in held.data.metrics
    }
    tables = sorted((run / "forward/mlflow").rglob("translations/*.json"))
    return {
        "curves": curves,
        "config": held.data.params["name"],
        "facts": {name.removeprefix("tandem."): text for name, text in held.data.tags.items()},
        "tables": len(tables),
        "table": json.loads(tables[-1].read_text())["data"],
        "files": sorted({path.name for path in (run / "forward/mlflow").rglob("*.*")}),
        "ids": [held.info.run_id, held.info.status, held.info.run_name],
        "refused": refused_by_mlflow(run),
    }


def refused_by_mlflow(run: Path) -> str:
    bookmark_path(run, "mlflow").unlink()
    try:
        with forwarding_to("mlflow", run):
            return ""
    except TandemError as error:
        return str(error)


def read_trackio(run: Path, number: str) -> dict[str, Any]:
    from trackio.sqlite_storage import SQLiteStorage

    rows = SQLiteStorage.get_logs("tandem", run.name, run_id=number)
    curves: dict[str, list[list[float]]] = {}
    tables = []
    for row in rows:
        tables += [row["translations"]] if "translations" in row else []
        for name, value in row.items():
            curves.setdefault(name, []).append([row["step"], value])
    facts = [each for row in rows if "facts" in row for each in row["facts"]["_value"]]
    config = SQLiteStorage.get_run_config("tandem", run.name, run_id=number) or {}
    return {
        "curves": curves,
        "config": config["name"],
        "facts": {each["fact"]: each["value"] for each in facts},
        "tables": len(tables),
        "table": [list(each.values()) for each in tables[-1]["_value"]],
        "files": [],
        "ids": SQLiteStorage.get_runs("tandem"),
    }


READERS: dict[str, Callable[[Path, str], dict[str, Any]]] = {
    "wandb": read_wandb,
    "mlflow": read_mlflow,
    "trackio": read_trackio,
}


def main() -> None:
    tool, run, rest = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    forward(tool, run)
    for path in rest.glob("log/*.jsonl"):
        with (run / "log" / path.name).open("ab") as file:
            file.write(path.read_bytes())
    forward(tool, run)
    forward(tool, run)
    number = json.loads(bookmark_path(run, tool).read_bytes())["id"]
    (run / "found.json").write_text(json.dumps(READERS[tool](run, number)))


if __name__ == "__main__":
    main()
