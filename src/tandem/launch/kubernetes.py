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
# JobSet, which the trainer makes of a job under the same name, puts it on every pod.
_JOB_LABEL = "jobset.sigs.k8s.io/jobset-name"


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
    service_account: str = ""
    """One that exists; empty: one of the job's own, without rights and without a token."""

    def manifest(self) -> str:
        """The recipe as a ConfigMap, what the pods may do, and the job, as YAML.

        TandemError for a value that Kubernetes would refuse.
        """
        _check("--image", self.image, _IMAGE)
        _check("--claim", self.claim, _SUBDOMAIN)
        _check("--runtime", self.runtime, _SUBDOMAIN)
        if self.namespace:
            _check("--namespace", self.namespace, _LABEL)
        if self.service_account:
            _check("--service-account", self.service_account, _SUBDOMAIN)
        accounts = [] if self.service_account else [self._account()]
        documents = [self._config_map(), *accounts, self._network_policy(), self._train_job()]
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

    def _account(self) -> dict[str, Any]:
        # The trainer lets a job name an account, but not leave out its token.
        return {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": self._metadata(),
            "automountServiceAccountToken": False,
        }

    def _network_policy(self) -> dict[str, Any]:
        """Lets nobody reach the pods but each other: the ranks trust whoever reaches their ports."""
        pods = {"podSelector": {"matchLabels": {_JOB_LABEL: self.name}}}
        return {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": self._metadata(),
            "spec": {**pods, "policyTypes": ["Ingress"], "ingress": [{"from": [dict(pods)]}]},
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
            # torchrun starts the ranks by python -m, which looks into the working folder first.
            "env": [{"name": "PYTHONSAFEPATH", "value": "1"}],
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
        return [*enter, "python", "-P", "-m", "torch.distributed.run", "-m", "--", *train]

    def _recipe_file(self) -> str:
        return f"{DISK}/{self.name}.yaml"

    def _patch(self) -> dict[str, Any]:
        """Mounts the claim and the recipe, and takes rights away."""
        pod = {
            "serviceAccountName": self.service_account or self.name,
            "volumes": [
                {"name": "disk", "persistentVolumeClaim": {"claimName": self.claim}},
                {"name": "recipe", "configMap": {"name": self.name}},
            ],
            "containers": [
                {
                    "name": _NODE,
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
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
