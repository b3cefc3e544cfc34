import os
import socket
from collections.abc import Mapping

import pytest

from tandem.errors import TandemError
from tandem.launch import environment
from tandem.launch.environment import rank_environment

OPEN_MPI_4 = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "OMPI_MCA_orte_hnp_uri": "3213361152.0;tcp://198.51.100.7:48875",
    "OMPI_MCA_orte_local_daemon_uri": "3213361152.1;tcp://198.51.100.8:39613",
    "PMIX_NAMESPACE": "3213361153",
}
OPEN_MPI_5 = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "PMIX_NAMESPACE": "prterun-gpu-node-1-15013@1",
}
MPICH = {"PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2", "PMI_FD": "9"}
INTEL = {**MPICH, "I_MPI_HYDRA_UUID": "463b0000-6a8d-daaf-5d60-0600c59b8a1a"}
SLURM = {
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
    "SLURM_GTIDS": "2,3",
    "SLURM_NTASKS": "4",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_STEP_NODELIST": "node[03-04]",
    "SLURM_JOB_ID": "17",
    "SLURM_STEP_ID": "0",
}
PLACE = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}


@pytest.mark.parametrize(
    ("given", "address"),
    [
        (OPEN_MPI_4, "198.51.100.7"),
        (OPEN_MPI_5, "gpu-node-1"),
        (INTEL | {"MASTER_ADDR": "a"}, None),
        (SLURM, "node03"),
    ],
)
def test_each_launcher_s_environment_says_which_rank_this_is(
    given: Mapping[str, str], address: str | None
) -> None:
    found = rank_environment(given)
    assert {name: found[name] for name in PLACE} == PLACE
    assert found.get("MASTER_ADDR") == address
    assert 12_000 <= int(found["MASTER_PORT"]) < 30_000


def test_a_process_that_nobody_started_as_a_rank_is_none() -> None:
    assert rank_environment({"HOME": "/root"}) == {}


@pytest.mark.parametrize("tasks", ["1", None])
def test_a_batch_script_and_a_step_of_one_task_are_no_ranks(tasks: str | None) -> None:
    given = {name: value for name, value in SLURM.items() if name != "SLURM_STEP_NUM_TASKS"}
    assert rank_environment(given if tasks is None else given | {"SLURM_STEP_NUM_TASKS": tasks}) == {}


def test_what_is_set_already_wins() -> None:
    mine = {"MASTER_ADDR": "first", "MASTER_PORT": "4242", "LOCAL_RANK": "0"}
    found = rank_environment(OPEN_MPI_4 | mine)
    assert not mine.keys() & found.keys()
    assert found["RANK"] == "3"
    assert rank_environment(SLURM | {"RANK": "0", "WORLD_SIZE": "2"}) == {}


def test_mpirun_inside_a_slurm_job_comes_before_slurm() -> None:
    assert rank_environment(SLURM | OPEN_MPI_4 | {"OMPI_COMM_WORLD_RANK": "2"})["RANK"] == "2"


def test_ranks_of_one_host_meet_there() -> None:
    local = MPICH | {"MPI_LOCALNRANKS": "4"}
    found = rank_environment(local)
    assert found["MASTER_ADDR"] == "127.0.0.1"
    assert rank_environment(local | {"PMI_RANK": "1"})["MASTER_PORT"] == found["MASTER_PORT"]


def test_all_ranks_of_a_job_derive_the_same_port_and_other_jobs_another() -> None:
    ports = {rank_environment(SLURM | {"SLURM_PROCID": rank})["MASTER_PORT"] for rank in ("1", "2", "3")}
    assert len(ports) == 1
    assert rank_environment(SLURM | {"SLURM_JOB_ID": "18"})["MASTER_PORT"] not in ports
    assert rank_environment(SLURM | {"SLURM_STEP_ID": "1"})["MASTER_PORT"] not in ports


def test_a_launcher_that_does_not_say_where_rank_0_is_gets_the_cure() -> None:
    with pytest.raises(
        TandemError, match="name an address of the first host, as in mpirun -genv MASTER_ADDR"
    ):
        rank_environment(MPICH)


def test_of_several_addresses_the_nearest_is_taken_and_never_one_that_this_host_has_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def source_of(address: str) -> str:
        return "10.0.0.2" if address.startswith(("10.", "203.")) else address

    def interface_of(address: str) -> str | None:
        return "docker0" if address == "172.17.0.1" else None

    monkeypatch.setattr(environment, "source_of", source_of)
    monkeypatch.setattr(environment, "interface_of", interface_of)
    uri = "1.0;tcp://172.17.0.1,203.0.113.1,10.0.0.1:48875;tcp6://[fe80::1]:48876"
    assert rank_environment(OPEN_MPI_4 | {"OMPI_MCA_orte_hnp_uri": uri})["MASTER_ADDR"] == "10.0.0.1"


def test_on_the_host_of_mpirun_the_way_to_the_world_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "source_of", lambda _: "10.0.0.1")
    uri = "1.0;tcp://172.17.0.1,10.0.0.1:48875"
    ours = {"OMPI_MCA_orte_hnp_uri": uri, "OMPI_MCA_orte_local_daemon_uri": uri}
    assert rank_environment(OPEN_MPI_4 | ours)["MASTER_ADDR"] == "10.0.0.1"


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("n7", "n7"),
        ("a,b", "a"),
        ("node[03-04,7],x", "node03"),
        ("rack[1-2]n[08,10]", "rack1n08"),
        ("gpu-1.site,gpu-2.site", "gpu-1.site"),
    ],
)
def test_the_first_of_slurm_s_nodes_is_found(nodes: str, first: str) -> None:
    assert rank_environment(SLURM | {"SLURM_STEP_NODELIST": nodes})["MASTER_ADDR"] == first


def test_rank_0_on_another_host_than_the_named_one_says_so() -> None:
    elsewhere = OPEN_MPI_4 | {"OMPI_COMM_WORLD_RANK": "0", "MASTER_ADDR": "198.51.100.7"}
    with pytest.raises(TandemError, match="does not have the address 198.51.100.7: give one that it has.*-x"):
        rank_environment(elsewhere)


def test_rank_0_takes_its_own_name_for_its_own_where_that_is_on_the_loopback() -> None:
    mine = {"SLURM_PROCID": "0", "MASTER_ADDR": "127.0.1.1", "MASTER_PORT": "0"}
    assert rank_environment(SLURM | mine)["RANK"] == "0"


def test_a_taken_port_is_told_by_rank_0_with_the_cure() -> None:
    with socket.create_server(("", 0)) as taken:
        port = str(taken.getsockname()[1])
        mine = {"SLURM_PROCID": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        with pytest.raises(TandemError, match=f"Port {port} of .* is taken.*MASTER_PORT="):
            rank_environment(SLURM | mine)
    assert rank_environment(SLURM | mine)["RANK"] == "0"


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (MPICH | {"PMI_SIZE": "four"}, "PMI_SIZE is 'four'"),
        (OPEN_MPI_5 | {"OMPI_COMM_WORLD_SIZE": ""}, "OMPI_COMM_WORLD_SIZE is ''"),
        (SLURM | {"SLURM_PROCID": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "x"}, "MASTER_PORT is 'x'"),
    ],
)
def test_an_environment_that_makes_no_sense_is_refused(given: Mapping[str, str], match: str) -> None:
    with pytest.raises(TandemError, match=match):
        rank_environment(given)


def test_ports_without_a_job_s_name_are_the_parent_s(monkeypatch: pytest.MonkeyPatch) -> None:
    local = MPICH | {"MPI_LOCALNRANKS": "4"}
    before = rank_environment(local)["MASTER_PORT"]
    parent = os.getppid()
    monkeypatch.setattr(os, "getppid", lambda: parent + 1)
    assert rank_environment(local)["MASTER_PORT"] != before
    assert rank_environment(MPICH | {"MASTER_ADDR": "a"})["MASTER_PORT"] == "29500"


@pytest.mark.parametrize(("cores", "threads"), [(16, "8"), (2, None)])
def test_ranks_share_the_cores_unless_each_is_bound_to_its_own(
    monkeypatch: pytest.MonkeyPatch, cores: int, threads: str | None
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setattr(environment, "cores", lambda: cores)
    assert rank_environment(SLURM).get("OMP_NUM_THREADS") == threads
    assert "OMP_NUM_THREADS" not in rank_environment(SLURM | {"OMP_NUM_THREADS": "3"})
