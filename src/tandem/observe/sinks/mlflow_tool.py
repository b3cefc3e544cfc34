"""A run in MLflow."""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import yaml
from mlflow import MlflowClient
from mlflow.entities import Metric, Param

from tandem.observe.sinks.curves import Point
from tandem.observe.sinks.tool import COLUMNS, Ending, Opening, table_rows
from tandem.runlog.event import SampleTranslated

if TYPE_CHECKING:
    from mlflow.entities import Experiment

__all__ = ["MlflowTool", "open_run"]

MILLION = 1_000_000
MOST_METRICS, MOST_PARAMS = 1_000, 100
"""In one call, as the server limits them."""
LONGEST_PARAM, LONGEST_TAG = 500, 5_000
_STATUS: Mapping[Ending, str] = {"well": "FINISHED", "badly": "FAILED"}


class MlflowTool:
    """Metrics with their steps and the times of the run; texts as tags, tables as files."""

    def __init__(self, client: MlflowClient, run_id: str) -> None:
        self._client, self.id = client, run_id

    def log_points(self, points: Sequence[Point]) -> None:
        """In batches that the server takes whole."""
        metrics = [
            Metric(_safe(name), value, point.time_ns // MILLION, point.step)
            for point in points
            for name, value in point.numbers.items()
        ]
        for start in range(0, len(metrics), MOST_METRICS):
            self._client.log_batch(self.id, metrics=metrics[start : start + MOST_METRICS])

    def log_translations(self, step: int, samples: Sequence[SampleTranslated]) -> None:
        """As a file that MLflow shows as a table."""
        table = {"columns": list(COLUMNS), "data": table_rows(samples)}
        self._client.log_dict(self.id, table, f"translations/step-{step:08d}.json")

    def log_events(self, step: int, lines: Sequence[tuple[str, str]]) -> None:
        """As a text, which replaces the one before."""
        del step
        self._client.log_text(self.id, "".join(f"{time}  {text}\n" for time, text in lines), "events.txt")

    def log_facts(self, step: int, facts: Mapping[str, str]) -> None:
        """As tags."""
        del step
        for name, text in facts.items():
            self._client.set_tag(self.id, _safe(f"tandem.{name}"), text[:LONGEST_TAG])

    def log_recipe(self, recipe: Mapping[str, object]) -> None:
        """As parameters, and whole as a file."""
        params = [Param(_safe(name), text[:LONGEST_PARAM]) for name, text in _flat(recipe, "")]
        for start in range(0, len(params), MOST_PARAMS):
            self._client.log_batch(self.id, params=params[start : start + MOST_PARAMS])
        self._client.log_text(self.id, yaml.safe_dump(dict(recipe), sort_keys=False), "recipe.yaml")

    def close(self, ending: Ending) -> None:
        """Say how the run ended, if it did."""
        if ending in _STATUS:
            self._client.set_terminated(self.id, status=_STATUS[ending])


def open_run(opening: Opening) -> MlflowTool:
    """Begin or go on: at the server that MLflow's own settings name, or in a database in the run's folder."""
    logging.getLogger("mlflow").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    local = f"sqlite:///{opening.folder / 'mlflow.db'}"
    client = MlflowClient(tracking_uri=local if opening.offline else None)
    if opening.id:
        client.update_run(opening.id, status="RUNNING")
        return MlflowTool(client, opening.id)
    experiment: Experiment | None = client.get_experiment_by_name(opening.project)
    files = (opening.folder / "mlflow").as_uri() if opening.offline else None
    number = (
        client.create_experiment(opening.project, artifact_location=files)
        if experiment is None
        else experiment.experiment_id
    )
    tool = MlflowTool(client, client.create_run(number, run_name=opening.name).info.run_id)
    # Parameters cannot change there: what a run that goes on does otherwise is among its events.
    tool.log_recipe(opening.config)
    return tool


def _flat(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, held in value.items():
            yield from _flat(held, f"{path}.{name}" if path else str(name))
    else:
        yield path, str(value)


def _safe(name: str) -> str:
    """MLflow refuses other characters."""
    return re.sub(r"[^\w\-. :/]", "_", name)
