"""A host's own part in a run over several: started there over ssh, it starts workers when it is told to.

It ends its workers when the one that told it is gone or silent for long: nobody else could.
"""

import os
import platform
import re
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from secrets import token_hex
from threading import Event, Lock, Thread

import torch

from tandem import __version__
from tandem.artefact import write_atomic
from tandem.checkpoint.listing import list_checkpoints
from tandem.errors import TandemError
from tandem.files import make_folder, open_new, read_bounded
from tandem.launch.channel import FarEnd, Message
from tandem.launch.hardware import choose_hardware
from tandem.launch.mesh import Mesh
from tandem.launch.pace import BEAT_S
from tandem.launch.start import STUCK_S, Start
from tandem.launch.tail import Tail
from tandem.lock import BusyError, beside, holding, read_note
from tandem.parallel.route import address_of, interface_of, is_wireguard, source_of
from tandem.runlog.layout import RunLayout

__all__ = ["FarHost", "main"]

LEASE = 0.75
"""How long we wait for a silent head, as a share of how long it waits for us: we have ended before it goes on."""
OPENING_S = 60.0
"""How long we wait for the head's first words."""
SAVE_S = 30.0
"""How long workers may take to save when the head is lost."""
BUSY_S = 60.0
"""How long an earlier one of us, which lost its head, may take to be gone."""
FLUSH_S = 20.0
"""How long it may take to send the rest of the log."""
_DISK_BYTES = 8


class FarHost:
    """Answers the head, which has opened it before anything else."""

    def __init__(self, end: FarEnd) -> None:
        self._end = end
        self._heard_s = time.monotonic()
        self._patience_s = OPENING_S
        self._start: Start | None = None
        self._tail: Tail | None = None
        self._mesh: Mesh | None = None
        self._sending = Lock()
        self._hurried = Event()
        self._leaves = False
        self._pulses = Path(tempfile.mkdtemp(prefix="tandem-pulses-"))
        self._run = Path()
        self._environment: dict[str, str] = {}
        self._place = ExitStack()

    def serve(self) -> None:
        """Do what the head says until it closes or is lost."""
        Thread(target=self._beat, daemon=True).start()
        Thread(target=self._watch_head, daemon=True).start()
        for message in self._end.messages():
            self._heard_s = time.monotonic()
            # In threads, all that may take long: the head must be heard meanwhile.
            match message["do"]:
                case "open":
                    Thread(target=self._answer, args=(self._open, message), daemon=True).start()
                case "flush":
                    Thread(target=self._flush, daemon=True).start()
                case "route":
                    self._answer(_route, message)
                case "listen":
                    self._answer(self._listen, message)
                case "reserve":
                    self._answer(_reserve, message)
                case "run":
                    self._begin(message)
                case "signal" if self._start is not None:
                    self._start.asked = signal.Signals(message["number"])
                case "end" if self._start is not None:
                    Thread(target=self._start.end, args=(message["grace_s"],), daemon=True).start()
                case _:
                    pass
        self.leave()

    def leave(self) -> None:
        """End workers, if there are any, giving them time to save, and then this process."""
        self._leaves = True
        current = self._start
        if current is not None and not current.is_over.is_set():
            current.asked = current.asked or signal.SIGTERM
            end_s = time.monotonic() + SAVE_S
            while time.monotonic() < end_s and not self._hurried.is_set() and not current.is_over.wait(0.1):
                pass
            current.asked = signal.SIGKILL
            current.is_over.wait(STUCK_S)
        self._close_mesh()
        for file in self._pulses.glob("*"):
            file.unlink(missing_ok=True)
        self._pulses.rmdir()
        self._place.close()
        os._exit(0)

    def hurry(self) -> None:
        """Do not wait for workers to save any longer: the head has sent another of us. One that has a head stays."""
        if self._leaves or time.monotonic() - self._heard_s > 3 * BEAT_S:
            self._hurried.set()
            Thread(target=self.leave, daemon=True).start()

    def _answer(self, do: Callable[[Message], Message], message: Message) -> None:
        try:
            answer = do(message)
        except (TandemError, OSError) as error:
            answer = {"is": "refused", "message": str(error)}
        with suppress(OSError):  # nobody may be there to hear it
            self._end.send(answer)

    def _open(self, message: Message) -> Message:
        folder = Path(message["folder"]).expanduser()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            os.chdir(folder)
            self._run = Path(message["run"])
            make_folder(self._run / "log", parents=True, below=self._run)
        except OSError as error:
            raise TandemError(f"Cannot use {folder}: {error.strerror}; give another --dir.") from error
        self._take_place(message["name"])
        shares = (self._run / message["token"]).exists()
        if not shares:
            write_atomic(self._run / "recipe.yaml", message["recipe"].encode())
        self._environment = dict(message["environment"])
        facts = _facts(message["device"], message["workers"])
        self._patience_s = LEASE * message["silence_s"]
        return {"is": "opened", "disk": "" if shares else _name_disk(self._run / "log"), **facts}

    def _take_place(self, name: str) -> None:
        """Wait until an earlier one of us is gone: its workers still have the GPUs."""
        place = self._run / f"far-{re.sub('[^A-Za-z0-9.-]', '_', name)}"
        end_s = time.monotonic() + BUSY_S
        while True:
            try:
                self._place.enter_context(holding(place))
            except BusyError:
                pid = int(read_note(beside(place.resolve(), "lock")).get("pid", 0))
                if time.monotonic() > end_s:
                    raise TandemError(
                        f"Process {pid} there trains in {self._run.resolve()} for another command: end that first."
                    ) from None
                _hurry(pid)
                time.sleep(BEAT_S / 10)
            else:
                return

    def _listen(self, message: Message) -> Message:
        """Open this host's end of the mesh, for the next start."""
        self._close_mesh()
        self._mesh = Mesh(name=platform.node(), address=message["address"], port=message["port"])
        return {"is": "listening", "port": self._mesh.port, "certificate": self._mesh.certificate}

    def _close_mesh(self) -> None:
        if self._mesh is not None:
            self._mesh.close()
            self._mesh = None

    def _begin(self, message: Message) -> None:
        # What the person said about interfaces counts more than what was found.
        environment = {**message["found"], **self._environment, **message["environment"]}
        received = message["received"]
        self._tail = None if received is None else Tail(self._run / "log", received)
        # It serves one start, and is for none where the ranks are all here.
        mesh, self._mesh = self._mesh, None
        if mesh is not None and "peers" not in (message["meeting"] or ()):
            mesh.close()
            mesh = None
        self._start = Start(message, environment=environment, pulses=self._pulses, run=self._run, mesh=mesh)
        Thread(target=self._carry_out, args=(self._start,), daemon=True).start()

    def _carry_out(self, started: Start) -> None:
        ending = started.carry_out()
        about = {"round": started.number, "newest": _newest_step(self._run), "leaves": self._leaves}
        with suppress(OSError):  # nobody may be there to hear it
            self._end.send({"is": "ended", **about, **ending})

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT_S)
            current = self._start
            about = {"round": 0, "pulses": {}}
            if current is not None:
                about = {"round": current.number, "pulses": current.pulses()}
            try:
                self._end.send({"is": "beat", **about})
                self._send_log()
            except OSError:
                return

    def _flush(self) -> None:
        end_s = time.monotonic() + FLUSH_S
        with suppress(OSError):
            while self._send_log() and time.monotonic() < end_s:
                pass
            self._end.send({"is": "flushed"})

    def _send_log(self) -> int:
        """Send what is new in the log, or a part of it; how many pieces that were."""
        count = 0
        # One at a time: what one has read, another must not overtake.
        with self._sending:
            for piece in () if self._tail is None else self._tail.pieces():
                self._end.send({"is": "log", "file": piece.file, "offset": piece.offset, "text": piece.text})
                count += 1
        return count

    def _watch_head(self) -> None:
        while time.monotonic() - self._heard_s < self._patience_s:
            time.sleep(BEAT_S / 2)
        self.leave()


def _hurry(pid: int) -> None:
    """Have an earlier one of us end, if it has lost its head and still waits for its workers to save."""
    with suppress(OSError):
        if b"tandem.launch.far" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGUSR1)


def _facts(device: str, workers: int) -> Message:
    chosen, count = choose_hardware(device, workers)
    return {
        "identity": _identify(),
        "tandem": __version__,
        "torch": str(torch.__version__),
        "device": chosen,
        "workers": count,
        "connection": os.environ.get("SSH_CONNECTION", ""),
        "time_s": time.time(),
    }


def _identify() -> str:
    """The same for all processes of this host, and of no other: names and machine ids are copied with images."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {Path('/proc/self/ns/net').readlink()}"


def _name_disk(folder: Path) -> str:
    """A name for the disk that this folder is on, the same for every host that shares it."""
    place, name = folder / ".disk", token_hex(_DISK_BYTES)
    with suppress(FileExistsError), open_new(place, below=folder.parent) as file:
        file.write(name.encode())
        return name
    # Another host may be about to write it; one that died before it did is made up for.
    end_s = time.monotonic() + BEAT_S
    while not (held := _read_name(place)) and time.monotonic() < end_s:
        time.sleep(BEAT_S / 100)
    if not held:
        write_atomic(place, name.encode())
    return held or name


def _read_name(place: Path) -> str:
    """The name in this file, which may be a stranger's: what is no name goes nowhere."""
    text = read_bounded(place, 4 * _DISK_BYTES, below=place.parent.parent).decode(errors="replace")
    return text if re.fullmatch(f"[0-9a-f]{{{2 * _DISK_BYTES}}}", text) else ""


def _route(message: Message) -> Message:
    """Address and interface by which this host reaches another, or those of the interface that was asked for."""
    nic, to = message["nic"], message["to"]
    if nic:
        address = address_of(nic)
        if address is None:
            raise TandemError(f"{platform.node()} has no interface {nic} with an address: check --nic.")
        return {"is": "routed", "address": address, "nic": nic, "is_private": is_wireguard(nic)}
    address = source_of(to)
    nic = interface_of(address) or ""
    return {"is": "routed", "address": address, "nic": nic, "is_private": is_wireguard(nic)}


def _reserve(message: Message) -> Message:
    address = message["address"]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as server:
            server.bind((address, 0))
            return {"is": "reserved", "port": server.getsockname()[1]}
    except OSError as error:
        raise TandemError(f"No port is free at {address}: {error.strerror}; look at its network.") from error


def _newest_step(run: Path) -> int | None:
    infos = list_checkpoints(RunLayout(run).checkpoints)
    return max((info.step for info in infos if info.is_complete), default=None)


def main() -> None:
    """Serve the head at the other end of this process's pipes."""
    # A hang-up comes when ssh's connection breaks; what to do then is decided here.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    host = FarHost(FarEnd())
    signal.signal(signal.SIGTERM, lambda *_: Thread(target=host.leave, daemon=True).start())
    signal.signal(signal.SIGUSR1, lambda *_: host.hurry())
    host.serve()


if __name__ == "__main__":
    main()
