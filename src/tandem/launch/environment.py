"""Which rank this process is, where mpirun or srun started it: their environment in torch's words."""

import os
import re
import socket
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from errno import EADDRINUSE
from ipaddress import ip_address

from tandem.data.workers import cores
from tandem.errors import TandemError
from tandem.parallel.route import interface_of, source_of

__all__ = ["rank_environment"]

_FAR = "192.0.2.1"
"""An address that nobody has: the way to it is the way to the world."""
_LOWEST_PORT, _PORTS = 12_000, 18_000
"""Below those that systems hand out by themselves."""
_TORCH_PORT = 29_500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """What a launcher tells a process."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    job: str
    """The same for all ranks of a job, and for no other job; empty where the launcher has no such name."""
    addresses: Sequence[str]
    """Of rank 0's host, the most likely first."""
    cure: str
    """How the launcher passes a value on to all ranks."""

    @property
    def is_one_host(self) -> bool:
        return self.local_size == self.size


def rank_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What torch wants to know and is not in the environment yet; empty where nobody started this as a rank.

    Raises TandemError where rank 0 cannot be met, or where its port is taken.
    """
    if {"RANK", "WORLD_SIZE"} <= environment.keys():
        return {}
    place = _maybe_place(environment)
    if place is None:
        return {}
    found = {
        "RANK": str(place.rank),
        "WORLD_SIZE": str(place.size),
        "LOCAL_RANK": str(place.local_rank),
        "LOCAL_WORLD_SIZE": str(place.local_size),
        "MASTER_ADDR": environment.get("MASTER_ADDR") or _address(place),
        "MASTER_PORT": environment.get("MASTER_PORT") or str(_port(place)),
        # Warnings of its network code, from every rank, that no address has a name.
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        **_threads(place.local_size),
    }
    if place.rank == 0:
        _check_meeting_place(found["MASTER_ADDR"], found["MASTER_PORT"], place.cure)
    return {name: value for name, value in found.items() if name not in environment}


def _maybe_place(environment: Mapping[str, str]) -> _Place | None:
    """From whoever started this process itself: mpirun inside a job of Slurm's comes before Slurm."""
    if "OMPI_COMM_WORLD_RANK" in environment:
        return _open_mpi(environment)
    if {"PMI_RANK", "MPI_LOCALRANKID"} <= environment.keys():
        return _hydra(environment)
    # Also the batch script itself, and a step of one task, have a number: there we start the ranks.
    if "SLURM_PROCID" in environment and int(environment.get("SLURM_STEP_NUM_TASKS", "1")) > 1:
        return _slurm(environment)
    return None


def _open_mpi(environment: Mapping[str, str]) -> _Place:
    return _Place(
        rank=_number(environment, "OMPI_COMM_WORLD_RANK"),
        size=_number(environment, "OMPI_COMM_WORLD_SIZE"),
        local_rank=_number(environment, "OMPI_COMM_WORLD_LOCAL_RANK"),
        local_size=_number(environment, "OMPI_COMM_WORLD_LOCAL_SIZE"),
        job=environment.get("PMIX_NAMESPACE", ""),
        addresses=_addresses_of_mpirun(environment),
        cure="mpirun -x MASTER_ADDR={address} -x MASTER_PORT={port} …",
    )


def _addresses_of_mpirun(environment: Mapping[str, str]) -> Sequence[str]:
    """Where mpirun runs, which is rank 0's host when that is named first, as seen from here."""
    # Open MPI 4: "3213361152.0;tcp://10.0.0.1,172.17.0.1:48875", with ";tcp6://[…]:48876" perhaps.
    uri = environment.get("OMPI_MCA_orte_hnp_uri", "")
    listed = re.search(r"tcp://([0-9.,]+):\d", uri)
    if listed is None:
        # Open MPI 5: "prterun-HOST-15013@1".
        named = re.fullmatch(r"prterun-(.+)-\d+@\d+", environment.get("PMIX_NAMESPACE", ""))
        return [named[1]] if named else []
    addresses = listed[1].split(",")
    if uri == environment.get("OMPI_MCA_orte_local_daemon_uri"):
        return sorted(addresses, key=lambda address: address != _maybe_source(_FAR))
    # An address that this host has too, as containers' bridges do, is not the one of the other host.
    others = [address for address in addresses if interface_of(address) is None]
    return sorted(others, key=_distance)


def _hydra(environment: Mapping[str, str]) -> _Place:
    """MPICH and Intel MPI."""
    return _Place(
        rank=_number(environment, "PMI_RANK"),
        size=_number(environment, "PMI_SIZE"),
        local_rank=_number(environment, "MPI_LOCALRANKID"),
        local_size=_number(environment, "MPI_LOCALNRANKS"),
        job=environment.get("I_MPI_HYDRA_UUID", ""),
        addresses=[],
        cure="mpirun -genv MASTER_ADDR {address} -genv MASTER_PORT {port} …",
    )


def _slurm(environment: Mapping[str, str]) -> _Place:
    nodes = environment.get("SLURM_STEP_NODELIST", "")
    return _Place(
        rank=_number(environment, "SLURM_PROCID"),
        size=_number(environment, "SLURM_STEP_NUM_TASKS"),
        local_rank=_number(environment, "SLURM_LOCALID"),
        local_size=len(environment.get("SLURM_GTIDS", "").split(",")),
        job=f"{environment.get('SLURM_JOB_ID', '')}.{environment.get('SLURM_STEP_ID', '')}",
        addresses=[_first_node(nodes)] if nodes else [],
        cure="MASTER_ADDR={address} MASTER_PORT={port} srun …",
    )


def _first_node(nodes: str) -> str:
    """Of a list as Slurm writes it: node[03-04,7],other is node03."""
    first = re.split(r",(?![^\[]*\])", nodes)[0]
    return re.sub(r"\[(\d+)[^\]]*\]", r"\1", first)


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment.get(name, "")
    if not text.isdecimal():
        raise TandemError(
            f"{name} is {text!r} in the environment of a rank: start it by mpirun, srun or torchrun."
        )
    return int(text)


def _address(place: _Place) -> str:
    if place.is_one_host:
        return "127.0.0.1"
    if place.addresses:
        return place.addresses[0]
    cure = place.cure.format(address="ADDRESS", port="PORT")
    raise TandemError(
        f"The launcher does not tell where rank 0 is: name an address of the first host, as in {cure}."
    )


def _port(place: _Place) -> int:
    if place.job:
        return _LOWEST_PORT + zlib.crc32(place.job.encode()) % _PORTS
    # All ranks of a host have the same parent.
    return _LOWEST_PORT + os.getppid() % _PORTS if place.is_one_host else _TORCH_PORT


def _check_meeting_place(address: str, port: str, cure: str) -> None:
    """Rank 0 is about to open the place where all ranks meet: say now if it cannot."""
    if not port.isdecimal():
        raise TandemError(f"MASTER_PORT is {port!r} in the environment: make it a number.")
    if not _is_own(address):
        told = cure.format(address="ADDRESS", port=port)
        raise TandemError(
            f"Rank 0 is on {socket.gethostname()}, which does not have the address {address}: "
            f"give one that it has, as in {told}."
        )
    try:
        # Without listening: nobody is to connect yet.
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("", int(port)))
    except OSError as error:
        if error.errno != EADDRINUSE:
            raise
        told = cure.format(address=address, port=_LOWEST_PORT + (int(port) + 1) % _PORTS)
        raise TandemError(
            f"Port {port} of {socket.gethostname()} is taken, where the ranks were to meet: "
            f"give another, as in {told}."
        ) from None


def _threads(ranks: int) -> dict[str, str]:
    """A share of the cores for each rank of the host, unless the launcher has given it cores of its own."""
    if cores() != os.cpu_count():
        return {}
    return {"OMP_NUM_THREADS": str(max(1, cores() // ranks))}


def _is_own(address: str) -> bool:
    """Whether this host has the address: the way to it begins there."""
    source = ip_address(source_of(address).partition("%")[0])
    # Debian gives a host's own name the address 127.0.1.1, and the way there begins at 127.0.0.1.
    return source.is_loopback or source in {
        ip_address(place[4][0]) for place in socket.getaddrinfo(address, None)
    }


def _distance(address: str) -> int:
    """How little of an address this host shares on the way there: least in the same network."""
    source = _maybe_source(address)
    if source is None:
        return 64
    return (int(ip_address(source)) ^ int(ip_address(address))).bit_length()


def _maybe_source(address: str) -> str | None:
    try:
        return source_of(address)
    except TandemError:
        return None
