"""A small run to save: weights, a recipe, a subword folder, and a log that remembers."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from tandem.artefact import building
from tandem.checkpoint.store import CheckpointStore, Scores, Snapshot
from tandem.data.subword.learn import KIND, VERSION
from tandem.runlog.event import Event

RECIPE = "name: tiny\ndata:\n  train:\n    - builtin: {pairs: 10}\n"

Some = TypeVar("Some", bound=Event)
BuildStore = Callable[..., CheckpointStore]


class KeptLog:
    """A run log that keeps its events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def log(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        pass

    def all(self, kind: type[Some]) -> list[Some]:
        return [event for event in self.events if isinstance(event, kind)]


def make_subword(folder: Path, files: Mapping[str, bytes]) -> Path:
    with building(folder, kind=KIND, version=VERSION, fingerprint="x") as build:
        for name, content in files.items():
            (build.path / name).write_bytes(content)
        build.facts = {"models": list(files), "by_word": False}
    return folder


def weights(step: int) -> dict[str, Tensor]:
    return {"embedding": torch.full((5, 3), float(step)), "bias": torch.arange(4.0) + step}


def snapshot(step: int, *, loss: float | None = None, bleu: float | None = None) -> Snapshot:
    return Snapshot(
        step=step,
        model=weights(step),
        optimizer={"moment": torch.full((5, 3), step / 3), "step": torch.tensor(step)},
        state={"step": step, "cursor": {"epoch": 0, "update": step}},
        scores=Scores(loss=loss, bleu=bleu),
    )


def save_all(store: CheckpointStore, *snapshots: Snapshot) -> None:
    for each in snapshots:
        store.save(each)
    store.wait()
