"""What an end of the mesh takes of a processor: bytes carried between two of them on one host, one and both ways."""

import argparse
import json
import multiprocessing
import os
import socket
import sys
import time
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import command_line, describe_machine, machine_slug

from tandem.launch.mesh import Mesh, Peer
from tandem.parallel.key_values import LineConnection
from tandem.parallel.loopback import rank_address

_RESULTS = Path(__file__).parent / "results"
_NETWORKS = (211, 212)
"""Of loopback addresses: on one host each end has its own, as two hosts would."""
_BLOCK = bytes(1 << 20)

_DEFINITIONS = {
    "sender_s_per_gb, receiver_s_per_gb": "processor seconds, user and system, of the process that is one end of the "
    "mesh, for 10^9 bytes: what it takes from its rank and encrypts, or decrypts and hands to its rank",
    "both_s_per_gb": "of one end that does both at once, for 10^9 bytes in each direction",
    "gbit_per_s": "each way; both ends and the two programs that make and take the bytes share this machine's cores",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=5)
    words = parser.parse_args()
    load = os.getloadavg()[0]
    rounds = [_measure(int(words.gigabytes * 1e9) // len(_BLOCK)) for _ in range(words.rounds)]
    result = {
        "what": "processor time of one end of the mesh",
        "machine": describe_machine({}),
        "command": command_line(),
        "definitions": _DEFINITIONS,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "load_before": load,
        "rounds": rounds,
        "median": {name: median(each[name] for each in rounds) for name in rounds[0]},
    }
    name = f"{result['date']}-mesh-ends-{machine_slug()}.json"
    (_RESULTS / name).write_text(json.dumps(result, indent=1) + "\n")
    print(name, result["median"])


def _measure(blocks: int) -> dict[str, float]:
    ends, pipes = [], []
    for own in (0, 1):
        ours, theirs = multiprocessing.Pipe()
        ends.append(multiprocessing.Process(target=_be_end, args=(own, theirs), daemon=True))
        ends[-1].start()
        pipes.append(ours)
    about = [pipe.recv() for pipe in pipes]
    for pipe in pipes:
        pipe.send([each["peer"] for each in about])
        pipe.recv()
    one = _carry(pipes, about, [(0, 1)], blocks)
    both = _carry(pipes, about, [(0, 1), (1, 0)], blocks)
    for end in ends:
        end.terminate()
        end.join()
    gigabytes = blocks * len(_BLOCK) / 1e9
    return {
        "sender_s_per_gb": one["used_s"][0] / gigabytes,
        "receiver_s_per_gb": one["used_s"][1] / gigabytes,
        "one_way_gbit_per_s": 8 * gigabytes / one["seconds"],
        "both_s_per_gb": sum(both["used_s"]) / 2 / gigabytes,
        "both_ways_gbit_per_s": 8 * gigabytes / both["seconds"],
    }


def _be_end(own: int, pipe: Connection) -> None:
    """One end, which says how much of a processor it has used whenever it is asked."""
    mesh = Mesh(name=f"h{own}", address="127.0.0.1")
    about = {"name": f"h{own}", "address": "127.0.0.1", "certificate": mesh.certificate}
    peer = Peer(**about, port=mesh.port, first_rank=own, ranks=1)
    pipe.send({"peer": asdict(peer), "socket": str(mesh.socket_path)})
    mesh.join({"peers": pipe.recv(), "own": own, "network": _NETWORKS[own]})
    pipe.send(None)
    while True:
        pipe.recv()
        used = os.times()
        pipe.send(used.user + used.system)


def _carry(
    pipes: list[Connection], about: list[dict[str, Any]], ways: list[tuple[int, int]], blocks: int
) -> dict[str, Any]:
    """Carry as many blocks each of these ways, all at once, from a rank of one end to a rank of the other."""
    connections = []
    for source, target in ways:
        with socket.create_server((rank_address(_NETWORKS[target], target), 0)) as rank:
            port = rank.getsockname()[1]
            _announce(about[target]["socket"], target, port)
            near = socket.create_connection((rank_address(_NETWORKS[source], target), port))
            connections.append((near, rank.accept()[0]))
    before, begin_s = _used(pipes), time.monotonic()
    threads = [
        Thread(target=job, args=pair) for pair in connections for job in (_feed(blocks), _drain(blocks))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - begin_s
    used_s = [after - earlier for earlier, after in zip(before, _used(pipes), strict=True)]
    for pair in connections:
        for connection in pair:
            connection.close()
    return {"seconds": seconds, "used_s": used_s}


def _announce(path: str, rank: int, port: int) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as connection:
        connection.connect(path)
        lines = LineConnection(connection)
        lines.send({"do": "announce", "rank": rank, "port": port})
        assert lines.receive() == {}


def _used(pipes: list[Connection]) -> list[float]:
    for pipe in pipes:
        pipe.send(None)
    return [pipe.recv() for pipe in pipes]


def _feed(blocks: int) -> Any:
    def feed(near: socket.socket, _: socket.socket) -> None:
        for _number in range(blocks):
            near.sendall(_BLOCK)

    return feed


def _drain(blocks: int) -> Any:
    def drain(_: socket.socket, far: socket.socket) -> None:
        buffer = bytearray(len(_BLOCK))
        left = blocks * len(_BLOCK)
        while left:
            left -= far.recv_into(buffer, min(left, len(buffer)))

    return drain


if __name__ == "__main__":
    main()
