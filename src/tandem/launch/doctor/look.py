"""An examination from beginning to end: all hosts at once, then the links between them, then all together."""

import math
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from tandem import __version__
from tandem.config import Recipe
from tandem.errors import TandemError
from tandem.launch.doctor.bedside import Bedside, NoAnswerError
from tandem.launch.doctor.disk import describe_disk
from tandem.launch.doctor.examination import Examination
from tandem.launch.doctor.facts import Clock, Disk, HostFacts, LinkFacts, Machine, Nic
from tandem.launch.doctor.links import Place, examine_links
from tandem.launch.doctor.machine import describe_machine, describe_nic
from tandem.launch.doctor.needs import Needs
from tandem.launch.doctor.sums import examine_sums
from tandem.launch.hosts import Host
from tandem.launch.ssh import Ssh
from tandem.progress import SILENT, Progress

__all__ = ["look", "look_here"]

_CLOCK_S, _MACHINE_S, _DISK_S, _NIC_S = 10.0, 90.0, 30.0, 10.0
_CLOCK_TRIES = 5
_FULL_BYTES, _BRIEF_BYTES = 64 * 2**20, 16 * 2**20
_NOWHERE = "192.0.2.1"
"""An address that nobody has: the way to it is the way to the world."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    folder: str
    nic: str
    brief: bool
    try_cpu: bool
    """Whether to measure processors, of which steps are predicted."""


def look(
    hosts: Sequence[Host],
    ssh: Ssh,
    *,
    folder: str,
    recipe: Recipe | None = None,
    port: int = 0,
    nic: str = "",
    trusted: bool = False,
    brief: bool = False,
    progress: Progress = SILENT,
) -> Examination:
    """Examine hosts, and the links between them, for training in `folder` there (relative: to the home).

    A host or a link that does not answer is told of; it holds nothing up for long. `brief` leaves out the summing of
    gradients, the loss of packets, and all links but those of neighbours. With port 0 hosts listen at any free one.
    On a trusted network gradients are summed without the mesh.
    """
    needs = Needs.of(recipe)
    is_predicted = needs.step_flops > 0 and len(hosts) > 1 and not brief
    plan = _Plan(folder=folder, nic=nic, brief=brief, try_cpu=is_predicted)
    with _attending(hosts, ssh) as bedsides:
        with progress.bar("examining hosts", total=len(hosts), unit="hosts") as bar, _pool(hosts) as pool:

            def examine(host: Host) -> HostFacts:
                found = _examine(bedsides[host.name], host, plan)
                bar.advance(1)
                return found

            facts = {host.name: host for host in pool.map(examine, hosts)}
        facts = _place(bedsides, facts, plan)
        places: dict[str, Place] = {
            name: (bedsides[name], host.nic.address)
            for name, host in facts.items()
            if host.nic and host.machine
        }
        links: tuple[LinkFacts, ...] = ()
        if len(places) > 1:
            links = examine_links(places, port=port, brief=brief, progress=progress)
        sums = None
        places = {name: place for name, place in places.items() if not place[0].lost}
        if len(places) > 1 and not brief:
            with progress.bar("summing gradients"):
                sums = examine_sums(
                    places,
                    facts,
                    links,
                    gradient_bytes=needs.gradient_bytes,
                    nic=nic,
                    port=port,
                    trusted=trusted,
                )
        found = tuple(
            replace(host, problem=host.problem or bedsides[name].lost) for name, host in facts.items()
        )
    return Examination(hosts=found, links=links, sums=sums, needs=needs, port=port, tandem=__version__)


def look_here(*, folder: Path, recipe: Recipe | None = None) -> Examination:
    """Examine this machine alone."""
    machine = describe_machine(try_gpus=True)
    disk = describe_disk(folder.absolute(), most_bytes=_FULL_BYTES)
    try:
        nic = describe_nic(towards=_NOWHERE)
    except TandemError:
        nic = None
    host = HostFacts(name=platform.node(), machine=machine, disk=disk, nic=nic)
    needs = Needs.of(recipe)
    return Examination(hosts=(host,), links=(), sums=None, needs=needs, port=0, tandem=__version__)


@contextmanager
def _attending(hosts: Sequence[Host], ssh: Ssh) -> Iterator[Mapping[str, Bedside]]:
    bedsides: dict[str, Bedside] = {}
    try:
        for host in hosts:
            bedsides[host.name] = Bedside(host.name, ssh)
        yield bedsides
    finally:
        with _pool(hosts) as pool:
            list(pool.map(Bedside.leave, bedsides.values()))


@contextmanager
def _pool(hosts: Sequence[Host]) -> Iterator[ThreadPoolExecutor]:
    """A thread for each host; who is interrupted does not wait for them."""
    pool = ThreadPoolExecutor(max(1, len(hosts)))
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _examine(at: Bedside, host: Host, plan: _Plan) -> HostFacts:
    facts = HostFacts(name=host.name, workers=host.workers)
    try:
        facts = replace(facts, reached_s=at.arrive())
        facts = replace(facts, clock=_clock(at))
        held = at.get("machine", limit_s=_MACHINE_S, try_gpus=not plan.brief, try_cpu=plan.try_cpu)
        facts = replace(facts, machine=Machine.from_json(held))
        most = _BRIEF_BYTES if plan.brief else _FULL_BYTES
        disk = Disk(**at.get("disk", limit_s=_DISK_S, folder=plan.folder, most_bytes=most))
        return replace(facts, disk=disk)
    except NoAnswerError as error:
        return replace(facts, problem=str(error))
    except (TypeError, KeyError):
        return _misread(facts, at)


def _misread(facts: HostFacts, at: Bedside) -> HostFacts:
    """A host whose answers have other fields than ours has another Tandem."""
    return replace(facts, machine=None, misread=at.tandem or "unknown")


def _clock(at: Bedside) -> Clock:
    """From the quickest of a few answers, which says most."""
    best = Clock(offset_s=math.nan, uncertainty_s=math.inf)
    for _ in range(_CLOCK_TRIES):
        begin, tick = time.time(), time.monotonic()
        there = at.get("clock", limit_s=_CLOCK_S)
        half = (time.monotonic() - tick) / 2
        if half < best.uncertainty_s:
            best = Clock(offset_s=there - begin - half, uncertainty_s=half)
    return best


def _place(
    bedsides: Mapping[str, Bedside], facts: Mapping[str, HostFacts], plan: _Plan
) -> dict[str, HostFacts]:
    """Find each host's interface on the way to another one."""
    first = {name: host.machine.ssh_address for name, host in facts.items() if host.machine is not None}
    first = {name: "" if _is_loopback(address) else address for name, address in first.items()}
    asked: dict[str, Future[Any]] = {}
    for name in first:
        others = (address for other, address in first.items() if other != name and address)
        asked[name] = bedsides[name].ask("nic", name=plan.nic, towards=next(others, first[name] or _NOWHERE))
    placed = dict(facts)
    for name, future in asked.items():
        try:
            nic = Nic(**bedsides[name].wait(future, limit_s=_NIC_S))
            placed[name] = replace(facts[name], nic=nic)
        except NoAnswerError as error:
            # One alone needs no network, unless it was asked for.
            problem = str(error) if plan.nic or len(first) > 1 else ""
            placed[name] = replace(facts[name], problem=facts[name].problem or problem)
        except TypeError:
            placed[name] = _misread(facts[name], bedsides[name])
    return placed


def _is_loopback(address: str) -> bool:
    return not address or ip_address(address.partition("%")[0]).is_loopback
