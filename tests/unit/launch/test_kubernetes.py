import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tandem.errors import TandemError
from tandem.launch.kubernetes import TrainJob

RECIPE = Path(__file__).parents[3] / "recipes" / "demo.yaml"
# What the resource allows, by the trainer's own types: pkg/apis/trainer/v1alpha1/trainjob_types.go.
SPEC = {
    "runtimeRef",
    "initializer",
    "trainer",
    "runtimePatches",
    "suspend",
    "activeDeadlineSeconds",
    "managedBy",
}
TRAINER = {"image", "command", "args", "env", "numNodes", "resourcesPerNode", "numProcPerNode"}
CONTAINER = {"name", "env", "volumeMounts", "securityContext"}
POD = {
    "serviceAccountName",
    "volumes",
    "initContainers",
    "containers",
    "imagePullSecrets",
    "securityContext",
    "nodeSelector",
    "affinity",
    "tolerations",
    "schedulingGates",
}


@pytest.fixture
def job() -> TrainJob:
    return TrainJob(
        recipe_name="demo",
        recipe=RECIPE.read_text(),
        overrides=["train.max_steps=900"],
        image="ghcr.io/me/tandem:1",
        claim="disk",
        nodes=2,
        gpus=4,
    )


def documents(job: TrainJob) -> dict[str, dict[str, Any]]:
    return {document["kind"]: document for document in yaml.safe_load_all(job.manifest())}


def parts(job: TrainJob) -> tuple[dict[str, Any], dict[str, Any]]:
    found = documents(job)
    return found["ConfigMap"], found["TrainJob"]


def pod(train_job: dict[str, Any]) -> dict[str, Any]:
    (patch,) = train_job["spec"]["runtimePatches"]
    (replicated,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    assert patch["manager"]
    assert replicated["name"] == "node"
    spec: dict[str, Any] = replicated["template"]["spec"]["template"]["spec"]
    return spec


def test_the_job_has_the_fields_of_the_resource_and_no_other(job: TrainJob) -> None:
    _, train_job = parts(job)
    assert (train_job["apiVersion"], train_job["kind"]) == ("trainer.kubeflow.org/v1alpha1", "TrainJob")
    assert train_job["spec"]["runtimeRef"] == {"name": "torch-distributed"}
    assert train_job["spec"].keys() <= SPEC
    assert train_job["spec"]["trainer"].keys() <= TRAINER
    assert pod(train_job).keys() <= POD
    (container,) = pod(train_job)["containers"]
    assert container["name"] == "node"
    assert container.keys() <= CONTAINER


def test_nodes_gpus_and_image_are_those_asked_for(job: TrainJob) -> None:
    trainer = parts(job)[1]["spec"]["trainer"]
    assert (trainer["image"], trainer["numNodes"], trainer["numProcPerNode"]) == ("ghcr.io/me/tandem:1", 2, 4)
    assert trainer["resourcesPerNode"]["limits"] == {"nvidia.com/gpu": 4}
    cpu = parts(replace(job, gpus=0))[1]["spec"]["trainer"]
    assert cpu["numProcPerNode"] == 1
    assert "resourcesPerNode" not in cpu
    assert cpu["command"][-2:] == ["--device", "cpu"]


def test_the_recipe_travels_as_it_is_and_lies_on_the_claim(job: TrainJob) -> None:
    config_map, train_job = parts(job)
    ((key, text),) = config_map["data"].items()
    assert text == job.recipe
    volumes = {volume["name"]: volume for volume in pod(train_job)["volumes"]}
    mounts = {each["name"]: each for each in pod(train_job)["containers"][0]["volumeMounts"]}
    assert mounts.keys() == volumes.keys()
    assert volumes["recipe"]["configMap"]["name"] == config_map["metadata"]["name"]
    assert volumes["disk"]["persistentVolumeClaim"]["claimName"] == "disk"
    assert mounts["recipe"]["subPath"] == key
    command = train_job["spec"]["trainer"]["command"]
    assert command[3] == mounts["disk"]["mountPath"]
    place = command.index(mounts["recipe"]["mountPath"])
    assert command[place + 1] == "train.max_steps=900"
    assert str(Path(command[place]).parent) == mounts["disk"]["mountPath"]


def test_torchrun_leaves_our_options_to_us(job: TrainJob) -> None:
    from torch.distributed.run import parse_args

    command = parts(job)[1]["spec"]["trainer"]["command"]
    words = command[command.index("torch.distributed.run") + 1 :]
    options = parse_args(words)  # type: ignore[no-untyped-call]
    assert (options.module, options.training_script) == (True, "tandem")
    assert options.training_script_args[0] == "train"


@pytest.mark.parametrize("name", ["demo", "My_Run.v2", "x" * 100, "a-", "9"])
def test_every_recipe_s_name_becomes_one_that_the_trainer_takes(job: TrainJob, name: str) -> None:
    found = parts(replace(job, recipe_name=name))[1]["metadata"]["name"]
    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", found)
    assert len(f"{found}-node-0-9999-abcde") <= 63


def test_a_namespace_is_on_all_parts(job: TrainJob) -> None:
    assert all("namespace" not in part["metadata"] for part in documents(job).values())
    named = documents(replace(job, namespace="nmt"))
    assert [part["metadata"]["namespace"] for part in named.values()] == ["nmt"] * 4


def test_nobody_reaches_the_pods_but_each_other(job: TrainJob) -> None:
    policy = documents(job)["NetworkPolicy"]
    assert policy["apiVersion"] == "networking.k8s.io/v1"
    pods = {"matchLabels": {"jobset.sigs.k8s.io/jobset-name": documents(job)["TrainJob"]["metadata"]["name"]}}
    assert policy["spec"] == {
        "podSelector": pods,
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": pods}]}],
    }


def test_the_pods_have_no_token_and_gain_no_rights(job: TrainJob) -> None:
    account = documents(job)["ServiceAccount"]
    assert account["automountServiceAccountToken"] is False
    spec = pod(documents(job)["TrainJob"])
    assert spec["serviceAccountName"] == account["metadata"]["name"]
    (container,) = spec["containers"]
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}


def test_an_account_that_is_named_is_used_and_none_is_made(job: TrainJob) -> None:
    found = documents(replace(job, service_account="puller"))
    assert "ServiceAccount" not in found
    assert pod(found["TrainJob"])["serviceAccountName"] == "puller"


def test_no_process_of_a_pod_imports_from_the_claim(job: TrainJob) -> None:
    trainer = documents(job)["TrainJob"]["spec"]["trainer"]
    assert trainer["env"] == [{"name": "PYTHONSAFEPATH", "value": "1"}]
    assert trainer["command"][trainer["command"].index("python") + 1] == "-P"


@pytest.mark.parametrize("field", ["image", "claim", "runtime", "namespace", "service_account"])
@pytest.mark.parametrize("text", ["a b", "x\nkind: Pod", "-a", "a'", "a;b"])
def test_a_value_that_is_no_name_is_refused(job: TrainJob, field: str, text: str) -> None:
    with pytest.raises(TandemError, match=f"--{field.replace('_', '-')} .* is not what Kubernetes takes"):
        replace(job, **{field: text}).manifest()  # type: ignore[arg-type]
