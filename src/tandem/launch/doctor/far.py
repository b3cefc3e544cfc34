"""`python -m tandem.launch.doctor.far`: the doctor's hand on a host, which answers what it is asked over a channel."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from signal import Signals
from threading import Event, Thread, Timer
from typing import Any

from tandem import __version__
from tandem.errors import TandemError
from tandem.launch.channel import FarEnd, Message
from tandem.launch.doctor.disk import describe_disk
from tandem.launch.doctor.listener import Listener
from tandem.launch.doctor.listening import describe_listeners
from tandem.launch.doctor.machine import describe_machine, describe_nic
from tandem.launch.doctor.sender import measure, try_port
from tandem.launch.mesh import Mesh
from tandem.parallel.key_values import MESH

__all__ = ["main"]

_LIFE_S = 600.0
"""Whatever becomes of the one who asks, this process does not stay longer after the last request."""


def main() -> None:
    """Answer each request in a thread of its own, until nobody asks any more."""
    far = FarEnd()
    far.send({"is": "here", "tandem": __version__})
    end = _end_later()
    for message in far.messages():
        end.cancel()
        end = _end_later()
        Thread(target=_answer, args=(far, message), daemon=True).start()
    for mesh in _meshes:
        mesh.close()
    os._exit(0)  # threads may wait for other hosts


def _end_later() -> Timer:
    timer = Timer(_LIFE_S, os._exit, (1,))
    timer.daemon = True
    timer.start()
    return timer


def _answer(far: FarEnd, message: Message) -> None:
    try:
        held = {"value": _DOING[message["do"]](message)}
    except TandemError as error:
        held = {"error": str(error)}
    except Exception as error:  # noqa: BLE001 - whatever it is, the one who asked must hear of it
        held = {"error": f"{type(error).__name__}: {error}"}
    far.send({"is": "answer", "number": message["number"], **held})


def _clock(_: Message) -> float:
    return time.time()


def _machine(message: Message) -> Mapping[str, Any]:
    return asdict(describe_machine(try_gpus=message["try_gpus"], try_cpu=message.get("try_cpu", False)))


def _disk(message: Message) -> Mapping[str, Any]:
    folder = Path.home() / Path(message["folder"]).expanduser()
    return asdict(describe_disk(folder, most_bytes=message["most_bytes"]))


_listeners: list[Listener] = []
_meshes: list[Mesh] = []


def _listen(message: Message) -> list[int | None]:
    listener = Listener(message["token"], address=message["address"], hosts=message["hosts"])
    _listeners.append(listener)
    return [listener.open(port) for port in message["ports"]]


def _close(_: Message) -> None:
    """Listen no longer for measurements of links."""
    for listener in _listeners:
        listener.close()


def _listeners_here(_: Message) -> Mapping[str, str]:
    return describe_listeners()


def _mesh(message: Message) -> Mapping[str, Any]:
    """Open this host's end of the mesh for a measurement."""
    mesh = Mesh(name=socket.gethostname(), address=message["address"], port=message["port"])
    _meshes[:] = [mesh]
    return {"port": mesh.port, "certificate": mesh.certificate}


def _connect(message: Message) -> str:
    return try_port(message["address"], message["port"], message["token"])


def _nic(message: Message) -> Mapping[str, Any]:
    return asdict(describe_nic(name=message["name"], towards=message["towards"]))


def _measure(message: Message) -> Mapping[str, float]:
    to = (message["address"], message["port"], message["token"])
    return measure(*to, seconds=message["seconds"], datagrams=message["datagrams"])


def _free_port(message: Message) -> int:
    address = message["address"]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as server:
        number: int = server.getsockname()[1]
        return number


def _reduce(message: Message) -> Any:
    """Run a rank to its end, or to the end of its time."""
    words = [sys.executable, "-P", "-m", "tandem.launch.doctor.reduce"]
    is_late = Event()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **message["environment"]}
    mesh = _meshes[0] if message.get("meeting") else None
    if mesh is not None:
        mesh.join(message["meeting"])
        environment[MESH] = str(mesh.socket_path)
    with subprocess.Popen(  # noqa: S603
        words,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:

        def end() -> None:
            is_late.set()
            process.kill()

        timer = Timer(message["limit_s"], end)
        timer.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(message["asked"]) + "\n")
            process.stdin.flush()
            said = process.stdout.read().strip().splitlines()
        finally:
            timer.cancel()
            if mesh is not None:
                mesh.close()
    if is_late.is_set():
        raise TandemError(f"it took more than {message['limit_s']:.0f} s.")
    if process.returncode < 0:
        raise TandemError(f"it was killed by {Signals(-process.returncode).name}.")
    if process.returncode != 0:
        raise TandemError((said or ["it gave no reason"])[-1])
    return json.loads(said[-1])


_DOING: Mapping[str, Callable[[Message], Any]] = {
    "clock": _clock,
    "close": _close,
    "connect": _connect,
    "disk": _disk,
    "free port": _free_port,
    "listen": _listen,
    "listeners": _listeners_here,
    "machine": _machine,
    "measure": _measure,
    "mesh": _mesh,
    "nic": _nic,
    "reduce": _reduce,
}


if __name__ == "__main__":
    main()
