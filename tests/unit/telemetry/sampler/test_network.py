import math
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from tandem.telemetry.sampler.network import Network

SNMP = """Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm OutSegs RetransSegs InErrs
Tcp: 1 500 {sent_again} 0
"""


def address(family: int, text: str) -> SimpleNamespace:
    return SimpleNamespace(family=family, address=text)


OWN = [address(socket.AF_INET, "10.0.0.1")]
LINK_LOCAL = [address(socket.AF_INET6, "fe80::1%veth0"), address(psutil.AF_LINK, "02:00")]


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Counters of the interfaces of a made-up host."""
    interfaces: dict[str, Any] = {
        "eth0": (True, 1000, OWN),
        "ib0": (True, 65535, OWN),
        "ib1": (True, 400_000, OWN),
        "veth0": (True, 10_000, LINK_LOCAL),
        "eth1": (False, 1000, OWN),
        "lo": (True, 0, [address(socket.AF_INET, "127.0.0.1")]),
    }
    monkeypatch.setattr(
        psutil,
        "net_if_stats",
        lambda: {name: SimpleNamespace(isup=up, speed=speed) for name, (up, speed, _) in interfaces.items()},
    )
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: {name: held[2] for name, held in interfaces.items()})
    held = {name: dict.fromkeys(_names(), 0) for name in interfaces}
    monkeypatch.setattr(
        psutil,
        "net_io_counters",
        lambda **_: {name: SimpleNamespace(**each) for name, each in held.items()},
    )
    return held


def _names() -> list[str]:
    return [f"{kind}_{way}" for kind in ("bytes", "packets") for way in ("recv", "sent")] + [
        f"{kind}{way}" for kind in ("drop", "err") for way in ("in", "out")
    ]


def test_interfaces_that_are_up_and_have_an_address_are_told_the_loopback_first(
    counts: dict[str, Any], tmp_path: Path
) -> None:
    for name, speed in (("eth0", 1000), ("ib0", 65535), ("ib1", 400_000)):
        (tmp_path / name / "device").mkdir(parents=True)
        (tmp_path / name / "speed").write_text(f"{speed}\n")
    assert Network(network=tmp_path).describe() == {
        "interfaces": ("lo", "eth0", "ib0", "ib1"),
        "interface_bits_per_s": (0, 1_000_000_000, 0, 400_000_000_000),
    }


def test_what_went_through_and_what_was_lost_is_told_by_interface(
    counts: dict[str, Any], tmp_path: Path
) -> None:
    snmp = tmp_path / "snmp"
    snmp.write_text(SNMP.format(sent_again=40))
    network = Network(snmp=snmp)
    counts["eth0"] |= {"bytes_recv": 300, "bytes_sent": 500, "packets_recv": 3, "packets_sent": 5}
    counts["eth0"] |= {"dropin": 1, "dropout": 2, "errin": 4, "errout": 8}
    snmp.write_text(SNMP.format(sent_again=47))
    assert network.sample(2.0) == {
        "received_bytes_per_s": (0, 150, 0, 0),
        "sent_bytes_per_s": (0, 250, 0, 0),
        "packets_per_s": (0, 4, 0, 0),
        "dropped": (0, 15, 0, 0),
        "retransmitted": 7,
    }
    assert network.sample(2.0)["dropped"] == (0, 0, 0, 0)


def test_an_interface_that_is_gone_is_not_known_and_the_others_are(
    counts: dict[str, Any], tmp_path: Path
) -> None:
    network = Network(snmp=tmp_path / "none")
    del counts["eth0"]
    counts["ib0"] |= {"bytes_sent": 10}
    sample = network.sample(1.0)
    assert math.isnan(sample["sent_bytes_per_s"][1])
    assert sample["sent_bytes_per_s"][2] == 10
    assert (sample["dropped"], sample["retransmitted"]) == ((0, -1, 0, 0), -1)


def test_bytes_that_really_go_over_the_loopback_are_seen() -> None:
    network = Network()
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = socket.create_connection(server.getsockname())
        receiver, _ = server.accept()
        with sender, receiver:
            sender.sendall(b"x" * 100_000)
            missing = 100_000
            while missing:
                missing -= len(receiver.recv(missing))
    assert network.describe()["interfaces"][0] == "lo"
    assert network.sample(1.0)["sent_bytes_per_s"][0] >= 100_000
