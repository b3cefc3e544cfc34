"""Facts about links become lines; what several bad links have in common is said once."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TypeAlias

from tandem.launch.doctor.blame import blame_directions, blame_links
from tandem.launch.doctor.costs import added_by_link
from tandem.launch.doctor.examination import Examination
from tandem.launch.doctor.facts import LinkFacts, Listening, Outcome
from tandem.launch.doctor.line import Line, Verdict
from tandem.launch.doctor.quantity import bits_a_second, seconds, share, size

__all__ = ["judge_links", "judge_listening", "judge_sums"]

Cost: TypeAlias = Callable[..., tuple[float, str]]
"""Of a link's speed: the seconds that it adds to a step, and a sentence."""

_POOR_LOSS, _BROKEN_LOSS = 0.001, 0.01
_MOST_SHOWN = 8
_SLOW, _CRAWLING = 0.5, 0.1
"""Of the speed of the cluster's fastest link: where one is poor, and where it is broken."""
_SUMMED = 0.5
"""Of the slowest link's speed, for summing."""
_A_PORT = 29400
_WHY = {
    "timed out": "nothing comes back, so a firewall drops it",
    "refused": "it is turned away, though somebody listens: a firewall rejects it, or the address is another machine's",
    "no route": "there is no way to it",
    "no answer": "somebody listens there and says nothing",
}


def judge_links(examination: Examination) -> Iterator[Line]:
    """Connections first, then what was measured over them."""
    links = examination.links
    yield from _judge_taken(links, examination.port)
    yield from _judge_connections(links, examination.port)
    yield from _judge_silence(links)
    measured = [link for link in links if link.bytes_per_s > 0 or link.latency_s > 0]
    lossy = _lossy(measured)
    # Not the usual one: where one host of three is slow, most links are.
    fast = max((link.bytes_per_s for link in measured if link.bytes_per_s > 0), default=math.nan)
    cost = partial(added_by_link, examination.needs, hosts=max(2, len(examination.hosts)), fast=fast)
    yield from _judge_streams(links, losing=_losing_hosts(measured))
    for link in measured:
        yield _judge_speed(link, fast, cost, is_lossy=link in lossy)
    yield from _judge_loss(measured, cost)


def judge_sums(examination: Examination) -> Iterator[Line]:
    """Of gradients over all hosts."""
    sums = examination.sums
    if sums is None:
        return
    host = ", ".join(sums.hosts) if len(sums.hosts) < 5 else f"{len(sums.hosts)} hosts"
    if sums.problem:
        cure = f"Gradients could not be summed: {sums.problem}"
        yield Line(host=host, what="all-reduce", value="failed", verdict="broken", cure=cure)
        return
    links = [link for link in examination.links if {link.sender, link.receiver} <= set(sums.hosts)]
    slowest = min((link.bytes_per_s for link in links if link.bytes_per_s > 0), default=math.nan)
    part = sums.bus_bytes_per_s / slowest
    value = (
        f"{size(sums.summed_bytes)} in {seconds(sums.seconds)}, {bits_a_second(8 * sums.bus_bytes_per_s)} each way, "
        f"{100 * part:.0f} % of the slowest link; gradients of a step ({size(sums.gradient_bytes)}) take "
        f"{seconds(sums.step_s)}"
    )
    if part < _SUMMED and not _lossy(links):
        cure = "Summing gets far less than the links carry: look at the load of the hosts, and at --nic."
        yield Line(host=host, what="all-reduce", value=value, verdict="poor", cure=cure)
    else:
        yield Line(host=host, what="all-reduce", value=value)


def judge_listening(examination: Examination) -> Iterator[Line]:
    """What strangers could connect to because of a run: the mesh, and nothing else."""
    for host in () if examination.sums is None else examination.sums.listening:
        new = {place: host.during[place] for place in host.during if place not in host.before}
        others = {place: program for place, program in new.items() if place != host.mesh}
        left = [place for place in host.after if place not in host.before]
        value = f"before {_places(host.before)}; while summing also {_places(new, mesh=host.mesh)}"
        value += f"; afterwards still {', '.join(left)}" if left else "; afterwards as before"
        if others or left:
            yield Line(
                host=host.host, what="listeners", value=value, verdict="poor", cure=_close(host, others)
            )
        else:
            yield Line(host=host.host, what="listeners", value=value)


def _places(listeners: Mapping[str, str], *, mesh: str = "") -> str:
    if not listeners:
        return "nothing"
    names = {place: "the mesh" if place == mesh else program for place, program in listeners.items()}
    shown = [f"{place} ({name})" if name else place for place, name in sorted(names.items())]
    return ", ".join(shown[:_MOST_SHOWN]) + (" …" if len(shown) > _MOST_SHOWN else "")


def _close(host: Listening, others: Mapping[str, str]) -> str:
    where = _places(others) if others else "a port that was opened"
    if not host.mesh:
        cure = "leave out --network trusted, or keep them off this network"
        return f"Strangers can connect to {where} on {host.host}: {cure}."
    return (
        f"Strangers can connect to {where} on {host.host}: if that is no program of yours, look what it is."
    )


def _judge_taken(links: Sequence[LinkFacts], port: int) -> Iterator[Line]:
    for name in dict.fromkeys(link.receiver for link in links if link.meeting_port == "taken"):
        cure = f"Another program on {name} has port {port}, perhaps a training: give another --port."
        yield Line(host=name, what="ports", value=f"port {port} is taken", verdict="poor", cure=cure)


def _judge_connections(links: Sequence[LinkFacts], port: int) -> Iterator[Line]:
    """A line for all that is well, and one for each host or pair where it is not."""
    tried = {(link.sender, link.receiver): link for link in links}
    bad = {pair: link for pair, link in tried.items() if not link.is_open}
    found = blame_directions(bad, tried)
    well = len(tried) - len(bad)
    if well:
        on = f"on port {port}" if port else "on a free port"
        value = f"{well} of {len(tried)} directions open, {on}"
        yield Line(host="all", what="ports", value=value)
    for where, pairs in found.items():
        worst = bad[pairs[0]]
        name = where.strip("→ ") if where.startswith("→") or where.endswith("→") else where
        to = f"port {port}" if port and worst.meeting_port != "taken" else "a free port"
        value = f"{'from' if where.endswith('→') else 'to'} {to}: {worst.outcome}"
        cure = _open_port(where, worst.outcome, port)
        yield Line(host=name, what="ports", value=value, verdict="broken", cure=cure)


def _judge_silence(links: Sequence[LinkFacts]) -> Iterator[Line]:
    """No reason to end a run: who comes to the port is kept waiting, but he gets there."""
    for name in dict.fromkeys(link.receiver for link in links if link.is_silent):
        cure = f"{name} can be reached, but did not answer in time: see who else connects to it, and how busy it is."
        yield Line(host=name, what="ports", value="connects, but no answer", verdict="poor", cure=cure)


def _open_port(where: str, outcome: Outcome, port: int) -> str:
    """One is enough, the same on every host."""
    told = f"TCP port {port}" if port else f"a TCP port, such as {_A_PORT}, and give it as --port {_A_PORT}"
    why = _WHY[outcome]
    if outcome == "no route":
        return f"{where}: {why}; look at addresses and routes, or give --nic."
    if where.startswith("→"):
        name = where.strip("→ ")
        return f"The others cannot connect to {name} ({why}): open {told} on {name} to the hosts."
    if where.endswith("→"):
        name = where.strip("→ ")
        return f"{name} cannot connect to the others ({why}): let {name} out to the hosts; open {told} there."
    return f"{where}: {why}; open {told} between them."


def _judge_streams(links: Sequence[LinkFacts], *, losing: AbstractSet[str]) -> Iterator[Line]:
    """Not of a host that loses packets: a stream that stalls there is the same trouble, which its line says."""
    for link in links:
        if link.problem and not losing & {link.sender, link.receiver}:
            host = f"{link.sender} → {link.receiver}"
            cure = (
                f"{host} connects, but no stream of data passes ({link.problem}): packets may be too long for what "
                "lies between, so try a smaller MTU; else look at the link."
            )
            yield Line(host=host, what="link", value="carries no data", verdict="broken", cure=cure)


def _judge_speed(link: LinkFacts, fast: float, cost: Cost, *, is_lossy: bool) -> Line:
    host = f"{link.sender} → {link.receiver}"
    value = f"{bits_a_second(8 * link.bytes_per_s)}, {seconds(link.latency_s)} there and back"
    if not is_lossy and link.bytes_per_s < _SLOW * fast:
        step_s, said = cost(slow=link.bytes_per_s)
        cure = (
            f"{host} carries {share(link.bytes_per_s / fast)} of the {bits_a_second(8 * fast)} of the fastest link "
            f"here; {said}. Look at its cable, port, shaping and load."
        )
        verdict: Verdict = "broken" if link.bytes_per_s < _CRAWLING * fast else "poor"
        return Line(host=host, what="link", value=value, verdict=verdict, cure=cure, step_s=step_s)
    return Line(host=host, what="link", value=value)


def _lossy(links: Sequence[LinkFacts]) -> list[LinkFacts]:
    return [link for link in links if link.loss > _POOR_LOSS]


def _losing_hosts(measured: Sequence[LinkFacts]) -> set[str]:
    pairs = [(link.sender, link.receiver) for link in measured if not math.isnan(link.loss)]
    bad = [(link.sender, link.receiver) for link in _lossy(measured)]
    return {where for where in blame_links(bad, pairs) if "→" not in where}


def _judge_loss(measured: Sequence[LinkFacts], cost: Cost) -> Iterator[Line]:
    known = {(link.sender, link.receiver): link for link in measured if not math.isnan(link.loss)}
    bad = {(link.sender, link.receiver): link.loss for link in _lossy(measured)}
    if blocked := sum(link.datagrams > 0 and math.isnan(link.loss) for link in measured):
        yield Line(host="all", what="loss", value=f"unknown in {blocked} directions: no UDP passes")
    if well := len(known) - len(bad):
        worst = max(link.loss for pair, link in known.items() if pair not in bad)
        value = f"{share(worst)} at most in {well} of {len(known)} directions"
        yield Line(host="all", what="loss", value=value)
    for where, pairs in blame_links(bad, known).items():
        worst = max(bad[pair] for pair in pairs)
        verdict: Verdict = "broken" if worst > _BROKEN_LOSS else "poor"
        whose = f"{where}'s link" if "→" not in where else f"The way {where}"
        speeds = [speed for pair in pairs if (speed := known[pair].bytes_per_s) > 0]
        step_s, said = cost(slow=min(speeds)) if speeds else (0.0, "")
        cure = (
            f"{whose} loses packets though little is sent"
            + (f"; {said}. Change" if said else ": change")
            + " its cable or switch port, or the host's driver."
        )
        value = f"{share(worst)} of packets lost" + (f" in {len(pairs)} directions" * ("→" not in where))
        yield Line(host=where, what="loss", value=value, verdict=verdict, cure=cure, step_s=step_s)
