"""Somebody else on a host or on its network, who connects to whatever listens and says what he can think of."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["NOBODY", "PROGRAM", "intruding"]

NOBODY = 65534
"""A user who owns nothing here."""

PROGRAM = r"""
import os, random, socket, struct, sys, time
most_s, user, report, targets = float(sys.argv[1]), int(sys.argv[2]), open(sys.argv[3], "w"), sys.argv[4:]
if user:
    os.setgid(user)
    os.setuid(user)

def listeners(table):
    with open(table) as file:
        for line in file.readlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                number, port = fields[1].split(":")
                yield number, int(port, 16)

def places():
    for target in targets or [""]:
        if not target:
            for number, port in listeners("/proc/self/net/tcp"):
                address = socket.inet_ntoa(struct.pack("=I", int(number, 16)))
                yield ("127.0.0.1" if address == "0.0.0.0" else address), port
            continue
        # As root he may look which ports the other host has open, instead of trying all.
        address, process = target.split("/")
        for table in ("tcp", "tcp6"):
            for number, port in listeners(f"/proc/{process}/net/{table}"):
                if port != 22:
                    yield address, port

def store(kind, key, value=b""):
    # The protocol of torch's store: a kind, lengths and bytes.
    return bytes([kind]) + struct.pack("=Q", len(key)) + key + (struct.pack("=Q", len(value)) + value if value else b"")

WORDS = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(256),
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    store(0, b"/default_pg/0//gloo/0", b"x" * 100),
    bytes([9]) + struct.pack("=I", 0x3C85F7CE) + store(3, b"key"),
    b"\x80\x04cposix\nsystem\n(S'true'\ntR.",
    os.urandom(4096),
]
held, count = [], 0
started = time.monotonic()
while time.monotonic() - started < most_s:
    for place in set(places()):
        # Gloo takes eight bytes for the number of the pair that a connection is for.
        for word in [struct.pack("=q", number) for number in range(6)] + [random.choice(WORDS)]:
            connection = socket.socket()
            try:
                connection.settimeout(0.05)
                connection.connect(place)
                connection.sendall(word)
                held.append(connection)
                count += 1
            except OSError:
                connection.close()
    for old in held[:-60]:
        old.close()
    del held[:-60]
    report.seek(0)
    report.write(str(count))
    report.flush()
    time.sleep(0.01)
"""


@contextmanager
def intruding(
    heard: Path,
    *,
    user: int = NOBODY,
    targets: Sequence[str] = (),
    prefix: Sequence[str] = (),
    most_s: float = 120.0,
) -> Iterator[None]:
    """Let a stranger try inside the block; the file tells how often he could connect.

    Without targets he tries whatever listens on his own host. A target is the address of a host and the number of a
    process there, as in 10.0.0.1/4242. `prefix` begins his command line.
    """
    # He becomes another user when Python runs, which may lie where only this one can get.
    words = [str(most_s), str(user), str(heard), *targets]
    with subprocess.Popen([*prefix, sys.executable, "-I", "-c", PROGRAM, *words], cwd="/") as stranger:
        try:
            yield
        finally:
            stranger.kill()
