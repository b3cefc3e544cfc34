"""The labelled runs that need no training: simulated ones, and ones of another tool."""

import zlib
from dataclasses import replace

from benchmarks.truth.cases_learning import LEARNING_CASES
from benchmarks.truth.cases_time import TIME_CASES
from benchmarks.truth.imported import Imported
from benchmarks.truth.scenario import Scenario

from tandem.artefact import JsonValue

__all__ = ["IMPORTED", "SIMULATED", "reseeded"]


def reseeded(scenario: Scenario, seed: int) -> Scenario:
    """The same run with other accidents; no two scenarios share theirs."""
    return replace(scenario, seed=zlib.crc32(scenario.name.encode()) + seed)


SIMULATED: tuple[Scenario, ...] = tuple(reseeded(each, 0) for each in (*TIME_CASES, *LEARNING_CASES))

_FOUR: dict[str, JsonValue] = {"gpus": 4, "hosts": 2, "gpu_name": "Tesla V100-SXM2-16GB"}

IMPORTED: tuple[Imported, ...] = (
    Imported(
        name="reference-imported",
        facts={
            **_FOUR,
            "observed_nic_bytes_per_s": 220e6,
            "observed_link_bits_per_s": 1e9,
            "observed_gpu_utilisation": 1.0,
        },
        answers={"network": "yes", "trained": "no", "gpus": "no", "overfitting": "no"},
    ),
    Imported(
        name="imported-no-rates",
        facts={**_FOUR, "observed_gpu_utilisation": 1.0},
        answers={"network": "cannot tell", "trained": "no", "gpus": "cannot tell"},
    ),
    Imported(
        name="imported-fast-link",
        facts={**_FOUR, "observed_nic_bytes_per_s": 220e6, "observed_link_bits_per_s": 25e9},
        answers={"network": "no", "trained": "no"},
    ),
    Imported(
        name="imported-one-gpu",
        ranks=1,
        facts={"gpus": 1, "hosts": 1, "observed_gpu_utilisation": 1.0},
        answers={"network": "no", "trained": "no"},
    ),
    Imported(
        name="imported-unevaluated",
        facts=dict(_FOUR),
        steps=3000,
        evaluate_every=0,
        answers={"overfitting": "cannot tell", "trained": "no"},
    ),
)
