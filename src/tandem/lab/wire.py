"""`python -m tandem.lab.wire NAMESPACE HOST-SIDE SWITCH-SIDE SECONDS LOG`: a long cable, in one direction.

Some kernels lack netem, the usual way to delay packets; a process can do the same with packet sockets.
"""

import ctypes
import os
import select
import socket
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

from tandem.lab.enter import detach, join_network

__all__ = ["carry", "main"]

_SOL_PACKET, _VNET_HDR, _IGNORE_OUTGOING = 263, 15, 23
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_ALL_PROTOCOLS, _NO_PROTOCOL = 3, 0
_SET_TIMER_SLACK = 29
_BUFFER_BYTES = 64 * 1024 * 1024
_LARGEST_FRAME = 128 * 1024
_BATCH = 32
# Past this a cable loses what comes in, rather than fill the memory.
_MOST_QUEUED = 50_000


def carry(host: socket.socket, switch: socket.socket, *, delay_s: float) -> None:
    """Hand what comes from the host to the switch, each frame so much later, for ever."""
    queue: deque[tuple[float, bytes]] = deque()
    while True:
        wait_s = max(0.0, queue[0][0] - time.monotonic()) if queue else None
        if select.select([host], [], [], wait_s)[0]:
            due = time.monotonic() + delay_s
            room = _MOST_QUEUED - len(queue)
            queue.extend((due, frame) for frame in _received(host)[:room])
        now = time.monotonic()
        while queue and queue[0][0] <= now:
            # A full queue or a link that is down loses the frame, as a cable would.
            with suppress(OSError):
                switch.send(queue.popleft()[1])


def main() -> None:
    """Open both ends, then go on in the background."""
    namespace, host, switch, delay, log = sys.argv[1:]
    join_network(namespace)
    with _open(host, _ALL_PROTOCOLS) as near, _open(switch, _NO_PROTOCOL) as far:
        detach(Path(log))
        _hurry()
        carry(near, far, delay_s=float(delay))


def _hurry() -> None:
    """Late frames would be a longer cable: wake in time, and before others on a busy machine."""
    ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, ctypes.c_ulong(1), 0, 0, 0)
    with suppress(PermissionError):
        os.nice(-15)


def _open(device: str, protocols: int) -> socket.socket:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    # With its header a train of packets stays one, as the kernel sends it: gigabits through one process.
    end.setsockopt(_SOL_PACKET, _VNET_HDR, 1)
    end.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
    end.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
    end.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _BUFFER_BYTES)
    end.bind((device, protocols))
    end.setblocking(False)
    return end


def _received(end: socket.socket) -> list[bytes]:
    frames: list[bytes] = []
    # A link that is down is an error once; the frames come again when it is up.
    with suppress(OSError):
        while len(frames) < _BATCH:
            frames.append(end.recv(_LARGEST_FRAME))
    return frames


if __name__ == "__main__":
    main()
