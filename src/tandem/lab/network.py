"""Namespaces, bridge and links of a lab; the machine's own network is not touched."""

import ipaddress
import json
import random
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from tandem.errors import TandemError
from tandem.lab.command import attempt, perform
from tandem.lab.link import Link
from tandem.lab.state import Host, State

__all__ = [
    "choose_network",
    "loss_filter",
    "plug",
    "raise_host",
    "raise_switch",
    "read_routes",
    "remove_namespace",
    "shape",
    "token_bucket",
    "wire_ends",
]

_BRIDGE = "br0"
_DEVICE = "eth0"
_NAMESPACES = Path("/run/netns")
# Under 64 kB the kernel cuts every packet to size in software, which slows the whole machine.
_LEAST_BURST_BYTES = 256 * 1024
_BURST_S = 1 / 250
_QUEUE_MS = 50
_ANY_SEGMENTS = 65535
# Classic BPF: where it reads a random number, and what it does with a packet.
_RANDOM = (-0x1000 + 56) & 0xFFFFFFFF
_PASS, _DROP = 0, 2
_EVERYTHING = ("bpf", "bytecode", f"1,6 0 0 {0xFFFFFFFF}")


def choose_network(taken: Sequence[ipaddress.IPv4Network], seed: str) -> ipaddress.IPv4Network:
    """A /24 that overlaps none of the taken ones."""
    dice = random.Random(seed)  # noqa: S311 - an address is no secret
    private = (f"10.{dice.randrange(256)}.{dice.randrange(256)}.0/24" for _ in range(256))
    # Set aside for measuring networks: for machines whose own network is all of 10.0.0.0/8.
    measuring = (f"198.{dice.choice((18, 19))}.{dice.randrange(256)}.0/24" for _ in range(64))
    for text in chain(private, measuring):
        network = ipaddress.IPv4Network(text)
        if not any(network.overlaps(other) for other in taken):
            return network
    raise TandemError("No range of addresses is free: 10.0.0.0/8 and 198.18.0.0/15 are all routed here.")


def read_routes() -> Iterator[ipaddress.IPv4Network]:
    """What this machine reaches other than by its default route."""
    for route in json.loads(perform(["ip", "-json", "-4", "route", "show", "table", "all"]) or "[]"):
        if route["dst"] not in {"default", "0.0.0.0/0"}:
            yield ipaddress.IPv4Network(route["dst"], strict=False)


def raise_switch(state: State) -> None:
    """Make the namespace of the bridge, and the bridge."""
    _add_namespace(state.switch)
    inside = ["ip", "-n", state.switch]
    perform([*inside, "link", "add", "name", _BRIDGE, "type", "bridge"])
    perform([*inside, "addr", "add", f"{state.gateway}/{state.prefix}", "dev", _BRIDGE])
    perform([*inside, "link", "set", "dev", _BRIDGE, "up"])


def raise_host(state: State, host: Host) -> None:
    """Make a host's namespace and its cable to the switch, whose end there has the host's name."""
    _add_namespace(host.namespace)
    # Without ARP, since for the bridge's address only the bridge may answer.
    cable = ["type", "veth", "peer", "name", _DEVICE, "netns", host.namespace]
    perform(["ip", "-n", state.switch, "link", "add", "name", host.name, "arp", "off", *cable])
    inside = ["ip", "-n", host.namespace]
    perform([*inside, "addr", "add", f"{host.address}/{state.prefix}", "dev", _DEVICE])
    perform([*inside, "link", "set", "dev", _DEVICE, "up"])


def plug(state: State, host: Host) -> None:
    """Put a host's cable into the bridge, by way of a second cable where a process delays what it sends."""
    inside = ["ip", "-n", state.switch]
    near, far = wire_ends(host)
    attempt([*inside, "link", "del", "dev", near])
    if host.link.delay_s:
        perform([*inside, "link", "set", "dev", host.name, "nomaster"])
        perform([*inside, "link", "add", "name", near, "arp", "off", "type", "veth", "peer", "name", far])
        perform([*inside, "link", "set", "dev", near, "up"])
        perform(["tc", "-n", state.switch, "qdisc", "add", "dev", near, "clsact"])
        # What goes to the host is not delayed, so it need not pass the process.
        redirect = ["action", "mirred", "egress", "redirect", "dev", host.name]
        perform(["tc", "-n", state.switch, "filter", "add", "dev", near, "ingress", *_EVERYTHING, *redirect])
        perform([*inside, "link", "set", "dev", far, "master", _BRIDGE, "up"])
    else:
        perform([*inside, "link", "set", "dev", host.name, "master", _BRIDGE])


def wire_ends(host: Host) -> tuple[str, str]:
    """The two ends of a delayed host's second cable: at the process, and in the bridge."""
    return f"{host.name}-a", f"{host.name}-b"


def shape(state: State, host: Host) -> None:
    """Give a plugged host's link its rate and loss in both directions, and its state."""
    entry = wire_ends(host)[1] if host.link.delay_s else host.name
    for namespace, sender in ((host.namespace, _DEVICE), (state.switch, host.name)):
        _set_rate(namespace, sender, host.link)
        # What is lost should be one packet, not the train of packets that the kernel sends as one.
        segments = 1 if host.link.loss else _ANY_SEGMENTS
        perform(["ip", "-n", namespace, "link", "set", "dev", sender, "gso_max_segs", str(segments)])
    for namespace, receiver in ((host.namespace, _DEVICE), (state.switch, entry)):
        _set_loss(namespace, receiver, host.link.loss)
    way = "up" if host.link.is_up else "down"
    perform(["ip", "-n", state.switch, "link", "set", "dev", host.name, way])


def token_bucket(rate_bits: int) -> list[str]:
    """The shaper's settings for a rate: tc's words."""
    burst_bytes = max(_LEAST_BURST_BYTES, round(rate_bits / 8 * _BURST_S))
    return ["tbf", "rate", f"{rate_bits}bit", "burst", f"{burst_bytes}b", "latency", f"{_QUEUE_MS}ms"]


def loss_filter(loss: float) -> list[str]:
    """A classifier that drops that share of packets: tc's words."""
    # Load a random number; at or past the limit pass, else drop.
    limit = min(round(loss * 2**32), 2**32 - 1)
    program = f"4,32 0 0 {_RANDOM},53 1 0 {limit},6 0 0 {_DROP},6 0 0 {_PASS}"
    return ["bpf", "direct-action", "bytecode", program]


def remove_namespace(name: str) -> None:
    """Remove a namespace and with it the devices in it, if it is there."""
    if (_NAMESPACES / name).exists():
        perform(["ip", "netns", "del", name])


def _add_namespace(name: str) -> None:
    perform(["ip", "netns", "add", name])
    perform(["ip", "-n", name, "link", "set", "dev", "lo", "up"])


def _set_rate(namespace: str, device: str, link: Link) -> None:
    if link.rate_bits is None:
        attempt(["tc", "-n", namespace, "qdisc", "del", "dev", device, "root"])
    else:
        words = ["tc", "-n", namespace, "qdisc", "replace", "dev", device, "root"]
        perform([*words, *token_bucket(link.rate_bits)])


def _set_loss(namespace: str, device: str, loss: float) -> None:
    inside = ["tc", "-n", namespace]
    attempt([*inside, "qdisc", "del", "dev", device, "clsact"])
    if loss:
        perform([*inside, "qdisc", "add", "dev", device, "clsact"])
        perform([*inside, "filter", "add", "dev", device, "ingress", *loss_filter(loss)])
