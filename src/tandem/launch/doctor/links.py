"""The links between hosts: which are tried, and what is found out about each."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import permutations
from typing import Any

from tandem.launch.doctor.bedside import Bedside, NoAnswerError
from tandem.launch.doctor.facts import OPEN, LinkFacts, Outcome
from tandem.progress import Progress

__all__ = ["choose_pairs", "examine_links"]

_ALL_PAIRS = 4
"""Hosts up to which each is measured against each."""
_LISTEN_S, _CONNECT_S, _MEASURE_S = 10.0, 20.0, 60.0
_FULL = {"seconds": 0.8, "datagrams": 2000}
_BRIEF = {"seconds": 0.3, "datagrams": 0}

Place = tuple[Bedside, str]
"""A host and its address."""


def choose_pairs(names: Sequence[str], *, brief: bool) -> list[tuple[str, str]]:
    """Which are measured, in both directions: all of a few; of many a ring, and a star from the first."""
    count = len(names)
    ring = [tuple(sorted((at, (at + 1) % count))) for at in range(count)]
    star = [] if brief else [(0, at) for at in range(1, count)]
    every = [(one, other) for one in range(count) for other in range(one + 1, count)]
    chosen = every if count <= _ALL_PAIRS and not brief else [*ring, *star]
    return [(names[one], names[other]) for one, other in dict.fromkeys(chosen) if one != other]


def examine_links(
    places: Mapping[str, Place], *, port: int, brief: bool, progress: Progress
) -> tuple[LinkFacts, ...]:
    """Connect each host to each, then measure pair by pair, so that none disturbs another."""
    token = secrets.token_hex(16)
    with progress.bar("connecting hosts"):
        ports = _listen(places, port, token)
        links = _connect(places, ports, token)
    pairs = [both for pair in choose_pairs(list(places), brief=brief) for both in (pair, pair[::-1])]
    with progress.bar("measuring links", total=len(pairs), unit="directions") as bar:
        for pair in pairs:
            link = links.get(pair)
            is_lost = any(places[name][0].lost for name in pair)
            if link is not None and link.is_open and link.answers and not is_lost:
                links[pair] = _measure(link, places, ports, token, brief=brief)
            bar.advance(1)
    return tuple(links.values())


def _listen(places: Mapping[str, Place], port: int, token: str) -> dict[str, list[int | None]]:
    """By host: a free port, and the meeting port if there is one, unless it is taken; somebody listens there now."""
    ports = [0, port] if port else [0]
    hosts = [address for _, address in places.values()]
    asked = {
        name: at.ask("listen", ports=ports, token=token, address=address, hosts=hosts)
        for name, (at, address) in places.items()
    }
    return _answers(places, asked, limit_s=_LISTEN_S)


def _connect(
    places: Mapping[str, Place], ports: Mapping[str, Sequence[int | None]], token: str
) -> dict[tuple[str, str], LinkFacts]:
    pairs = [pair for pair in permutations(places, 2) if set(pair) <= set(ports)]
    asked: dict[tuple[str, str], list[Future[Any] | None]] = {}
    for sender, receiver in pairs:
        at, to = places[sender][0], places[receiver][1]
        asked[sender, receiver] = [
            None if number is None else at.ask("connect", address=to, port=number, token=token)
            for number in ports[receiver]
        ]
    links = {}
    for (sender, receiver), futures in asked.items():
        outcomes = [_outcome(places[sender][0], future) for future in futures]
        if None not in outcomes:
            fresh, meeting = outcomes[0], outcomes[-1]
            links[sender, receiver] = LinkFacts(
                sender=sender,
                receiver=receiver,
                fresh_port=fresh or "taken",
                meeting_port=meeting or "taken",
            )
    return links


def _outcome(at: Bedside, future: "Future[Any] | None") -> Outcome | None:
    """None where the host that should have tried is gone: that is said of the host, not of its links."""
    if future is None:
        return "taken"
    try:
        found: Outcome = at.wait(future, limit_s=_CONNECT_S)
    except NoAnswerError:
        return None
    return found


def _measure(
    link: LinkFacts,
    places: Mapping[str, Place],
    ports: Mapping[str, Sequence[int | None]],
    token: str,
    *,
    brief: bool,
) -> LinkFacts:
    plan = _BRIEF if brief else _FULL
    at, to = places[link.sender][0], places[link.receiver][1]
    number = ports[link.receiver][-1 if link.meeting_port == OPEN else 0]
    try:
        held = at.get("measure", limit_s=_MEASURE_S, address=to, port=number, token=token, **plan)
    except NoAnswerError as error:
        # Where a host is gone, that is the trouble, and not its links.
        both_there = at.is_there() and places[link.receiver][0].is_there()
        return replace(link, problem=str(error) if both_there else "")
    try:
        return replace(link, datagrams=int(plan["datagrams"]), **held)
    except TypeError:
        return link  # another Tandem, which its host's line says


def _answers(
    places: Mapping[str, Place], asked: Mapping[str, "Future[Any]"], *, limit_s: float
) -> dict[str, Any]:
    """Of those that answer."""
    held = {}
    for name, future in asked.items():
        wait: Callable[..., Any] = places[name][0].wait
        try:
            held[name] = wait(future, limit_s=limit_s)
        except NoAnswerError:
            continue
    return held
