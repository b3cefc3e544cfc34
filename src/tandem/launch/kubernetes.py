"""A run as a job of the Kubeflow trainer's: the manifest."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from tandem.errors import TandemError

__all__ = ["TrainJob"]

DISK = "/tandem"
"""Where the claim is mounted, and the recipe in it: what the recipe calls relative is relative to it."""
_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,499}")
_LONGEST_NAME = 40
"""Of the 63 letters of a label, pods need some behind the job's name, as in -node-0-0-abcde."""
# The names that the trainer's runtimes give to the job and to its container.
_NODE = "node"
_KEY = "recipe.yaml"


class _Dumper(yaml.SafeDumper):
    """Texts of several lines are written as lines."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainJob:
    """A TrainJob of the Kubeflow trainer, version 2.2 or newer."""

    recipe_name: str
    recipe: str
    """The text of the recipe, which stays as it is: its paths are those of the container."""
    overrides: Sequence[str]
    image: str
    claim: str
    nodes: int
    gpus: int
    """A node; 0 means one process on the CPU."""
    namespace: str = ""
    runtime: str = "torch-distributed"

    def manifest(self) -> str:
        """The recipe as a ConfigMap, and the job, as YAML; TandemError for a value that Kubernetes would refuse."""
        _check("--image", self.image, _IMAGE)
        _check("--claim", self.claim, _SUBDOMAIN)
        _check("--runtime", self.runtime, _SUBDOMAIN)
        if self.namespace:
            _check("--namespace", self.namespace, _LABEL)
        documents = [self._config_map(), self._train_job()]
        return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)

    @property
    def name(self) -> str:
        """The recipe's name as Kubernetes wants names."""
        name = "tandem-" + re.sub(r"[^a-z0-9]+", "-", self.recipe_name.lower())
        return name[:_LONGEST_NAME].rstrip("-")

    def _metadata(self) -> dict[str, Any]:
        return {"name": self.name} | ({"namespace": self.namespace} if self.namespace else {})

    def _config_map(self) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": self._metadata(),
            "data": {_KEY: self.recipe},
        }

    def _train_job(self) -> dict[str, Any]:
        return {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": self._metadata(),
            "spec": {
                "runtimeRef": {"name": self.runtime},
                "trainer": self._trainer(),
                "runtimePatches": [{"manager": "tandem", "trainingRuntimeSpec": self._patch()}],
            },
        }

    def _trainer(self) -> dict[str, Any]:
        trainer: dict[str, Any] = {
            "image": self.image,
            "command": self._command(),
            "numNodes": self.nodes,
            "numProcPerNode": max(1, self.gpus),
        }
        if self.gpus:
            gpus = {"nvidia.com/gpu": self.gpus}
            trainer["resourcesPerNode"] = {"requests": gpus, "limits": dict(gpus)}
        return trainer

    def _command(self) -> list[str]:
        # The trainer has no field for the folder to work in. torchrun takes nodes, processes and the first node's
        # address from the environment that the trainer sets.
        enter = ["sh", "-c", 'cd "$0" && exec "$@"', DISK]
        device = "cuda" if self.gpus else "cpu"
        train = ["tandem", "train", self._recipe_file(), *self.overrides, "--device", device]
        return [*enter, "python", "-m", "torch.distributed.run", "-m", "--", *train]

    def _recipe_file(self) -> str:
        return f"{DISK}/{self.name}.yaml"

    def _patch(self) -> dict[str, Any]:
        """Mounts the claim and the recipe."""
        pod = {
            "volumes": [
                {"name": "disk", "persistentVolumeClaim": {"claimName": self.claim}},
                {"name": "recipe", "configMap": {"name": self.name}},
            ],
            "containers": [
                {
                    "name": _NODE,
                    "volumeMounts": [
                        {"name": "disk", "mountPath": DISK},
                        {
                            "name": "recipe",
                            "mountPath": self._recipe_file(),
                            "subPath": _KEY,
                            "readOnly": True,
                        },
                    ],
                }
            ],
        }
        job = {"name": _NODE, "template": {"spec": {"template": {"spec": pod}}}}
        return {"template": {"spec": {"replicatedJobs": [job]}}}


def _check(option: str, text: str, pattern: re.Pattern[str]) -> None:
    if pattern.fullmatch(text) is None:
        raise TandemError(
            f"{option} {text!r} is not what Kubernetes takes there: write it as kubectl shows it."
        )
