"""Summing gradients over hosts: who takes part, how much, and how long it takes."""

import os
import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextlib import suppress
from dataclasses import replace
from itertools import permutations
from typing import Any

from tandem.launch.doctor.bedside import NoAnswerError
from tandem.launch.doctor.facts import HostFacts, LinkFacts, Listening, SumFacts
from tandem.launch.doctor.links import Place
from tandem.launch.mesh import Peer, describe_mesh

__all__ = ["choose_members", "examine_sums"]

_GOAL_S = 0.4
"""How long one sum should take; a slow link gets fewer bytes."""
_STARTING_S = 40.0
"""How long torch may take to load, and ranks to meet."""
_PATIENCE = 20
_PORT_S = 10.0
_LOOK_S = 0.5
"""How often hosts are asked what listens there meanwhile."""
_AFTERWARDS_S = 5.0
"""How long the others may take to tell what they know when one has failed."""
_SYMPTOM = re.compile(r"tim(ed|e) ?out|took more than|connection (closed|reset)|broken pipe", re.IGNORECASE)
"""What a rank says when it is another one that failed."""
_FORWARDED = ("NCCL_", "GLOO_", "TORCH_")
"""Of this machine's environment, what training hands to its ranks too."""


def choose_members(names: Sequence[str], links: Sequence[LinkFacts]) -> list[str]:
    """The hosts that can all connect to each other; those that can connect to fewest are left out first."""
    is_open = {(link.sender, link.receiver) for link in links if link.is_open}
    members = list(names)
    while bad := [pair for pair in permutations(members, 2) if pair not in is_open]:
        troubles = [sum(name in pair for pair in bad) for name in members]
        members.pop(troubles.index(max(troubles)))
    return members


def examine_sums(
    places: Mapping[str, Place],
    hosts: Mapping[str, HostFacts],
    links: Sequence[LinkFacts],
    *,
    gradient_bytes: int,
    nic: str = "",
    port: int = 0,
    trusted: bool = False,
) -> SumFacts | None:
    """One rank a host sums as many gradients as the slowest link carries in a moment; None for less than two.

    `nic` is an interface that the person named, `port` where each host listens; on a trusted network the ranks listen
    themselves.
    """
    members = choose_members(list(places), links)
    if len(members) < 2:
        return None
    gpus = [machine.usable_gpus if (machine := hosts[name].machine) else 0 for name in members]
    facts = SumFacts(
        hosts=tuple(members),
        left_out=tuple(name for name in places if name not in members),
        device="cuda" if all(gpus) else "cpu",
        gradient_bytes=gradient_bytes,
    )
    speeds = [link.bytes_per_s for link in links if {link.sender, link.receiver} <= set(members)]
    slowest = min((speed for speed in speeds if speed > 0), default=1e6)
    most = int(slowest * _GOAL_S / (2 * (len(members) - 1) / len(members)))
    limit_s = _STARTING_S + _PATIENCE * _GOAL_S
    asked = {"gradient_bytes": gradient_bytes, "most_bytes": most, "device": facts.device, "limit_s": limit_s}
    environments = {name: _environment(hosts[name], nic) for name in members}
    try:
        return replace(facts, **_run(places, environments, asked, port=None if trusted else port))
    except NoAnswerError as error:
        return replace(facts, problem=str(error))
    except (TypeError, KeyError):
        return replace(
            facts, problem="a host's Tandem answers otherwise than this one: install the same on all."
        )


def _run(
    places: Mapping[str, Place],
    environments: Mapping[str, Mapping[str, str]],
    asked: Mapping[str, Any],
    *,
    port: int | None,
) -> Mapping[str, Any]:
    """What the slowest rank measured, and what listened; `port` is that of the mesh, None for none."""
    names = list(environments)
    # What measured the links listens no longer: what is shown as there before is not ours.
    for closing in [(places[name][0], places[name][0].ask("close")) for name in names]:
        closing[0].wait(closing[1], limit_s=_PORT_S)
    before = _listeners(places, names)
    addresses, meeting = _meeting(places, names, port)
    futures: dict[str, Future[Any]] = {}
    for rank, (name, given) in enumerate(environments.items()):
        world = {"WORLD_SIZE": str(len(names)), "RANK": str(rank), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
        futures[name] = places[name][0].ask(
            "reduce",
            environment={**given, **addresses, **world},
            asked=asked,
            limit_s=asked["limit_s"],
            meeting=meeting and {**meeting, "own": rank},
        )
    during: dict[str, dict[str, str]] = {name: {} for name in names}
    end_s = time.monotonic() + asked["limit_s"] + _PORT_S
    while not wait(futures.values(), timeout=_LOOK_S).done and time.monotonic() < end_s:
        # One that is gone does not answer its part of the sum either, which says more.
        with suppress(NoAnswerError):
            for name, listeners in _listeners(places, names).items():
                during[name].update(listeners)
    _wait(list(futures.values()), limit_s=end_s - time.monotonic())
    measured = [places[name][0].wait(future, limit_s=0) for name, future in futures.items()]
    slowest: Mapping[str, Any] = max(measured, key=lambda rank: rank["seconds"])
    after = _listeners(places, names)
    peers = {
        peer["name"]: f"{_shown(peer['address'])}:{peer['port']}" for peer in (meeting or {}).get("peers", ())
    }
    listening = [
        Listening(
            host=name, mesh=peers.get(name, ""), before=before[name], during=during[name], after=after[name]
        )
        for name in names
    ]
    return {**slowest, "listening": tuple(listening)}


def _meeting(
    places: Mapping[str, Place], names: Sequence[str], port: int | None
) -> tuple[dict[str, str], dict[str, Any] | None]:
    """Where the ranks find each other: an address in their environment, or a mesh whose ends listen at the port."""
    if port is None:
        first, address = places[names[0]]
        free = first.get("free port", limit_s=_PORT_S, address=address)
        return {"MASTER_ADDR": address, "MASTER_PORT": str(free)}, None
    peers = []
    for rank, name in enumerate(names):
        at, address = places[name]
        end = at.get("mesh", limit_s=_PORT_S, address=address, port=port)
        peers.append(Peer(name=name, address=address, first_rank=rank, ranks=1, **end))
    return {}, describe_mesh(peers)


def _listeners(places: Mapping[str, Place], names: Sequence[str]) -> dict[str, dict[str, str]]:
    """What others could connect to on each host now."""
    futures = {name: places[name][0].ask("listeners") for name in names}
    return {name: dict(places[name][0].wait(future, limit_s=_PORT_S)) for name, future in futures.items()}


def _shown(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _wait(futures: Sequence["Future[Any]"], *, limit_s: float) -> None:
    """Until all have answered; of several failures the one is raised that looks like a cause."""
    done = wait(futures, timeout=limit_s, return_when=FIRST_EXCEPTION).done
    if any(future.exception() for future in done):
        done = wait(futures, timeout=_AFTERWARDS_S).done
    if failures := [error for future in futures if future in done and (error := future.exception())]:
        raise min(failures, key=lambda error: _SYMPTOM.search(str(error)) is not None)


def _environment(host: HostFacts, nic: str) -> dict[str, str]:
    """What the person said about interfaces counts more than what was found, and --nic most."""
    told = {name: value for name, value in os.environ.items() if name.startswith(_FORWARDED)}
    found = _interface(host)
    return {**told, **found} if nic else {**found, **told}


def _interface(host: HostFacts) -> dict[str, str]:
    if host.nic is None or not host.nic.name:
        return {}
    # Without the sign NCCL takes every interface whose name begins so.
    return {"GLOO_SOCKET_IFNAME": host.nic.name, "NCCL_SOCKET_IFNAME": f"={host.nic.name}"}
