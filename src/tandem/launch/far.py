"""A host's own part in a run over several: started there over ssh, it starts workers when it is told to.

It ends its workers when the one that told it is gone or silent for long: nobody else could.
"""

import os
import platform
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import torch

from tandem import __version__
from tandem.artefact import write_atomic
from tandem.checkpoint.listing import list_checkpoints
from tandem.data.workers import cores
from tandem.errors import TandemError
from tandem.launch.agent import Job, Meeting, MeetingError, run_once
from tandem.launch.channel import FarEnd, Message
from tandem.launch.hardware import choose_hardware
from tandem.launch.local import read_standings, worker_environment
from tandem.launch.report import Reports
from tandem.launch.tail import Tail
from tandem.lock import BusyError, beside, holding, read_note
from tandem.parallel.route import address_of, interface_of, source_of
from tandem.runlog.layout import RunLayout

__all__ = ["BEAT_S", "FarHost", "main"]

BEAT_S = 2.0
"""How often each side shows that it lives."""
LEASE = 0.75
"""How long we wait for a silent head, as a share of how long it waits for us: we have ended before it goes on."""
OPENING_S = 60.0
"""How long we wait for the head's first words."""
SAVE_S = 30.0
"""How long workers may take to save when the head is lost."""
BUSY_S = 60.0
"""How long an earlier one of us, which lost its head, may take to be gone."""
STUCK_S = 10.0
"""How long workers that were killed may take to be gone."""


class FarHost:
    """Answers the head, which has opened it before anything else."""

    def __init__(self, end: FarEnd) -> None:
        self._end = end
        self._heard_s = time.monotonic()
        self._patience_s = OPENING_S
        self._round: _Round | None = None
        self._tail: Tail | None = None
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
            try:
                self._obey(message)
            except TandemError as error:
                self._end.send({"is": "refused", "message": str(error)})
        self._leave()

    def _obey(self, message: Message) -> None:
        match message["do"]:
            case "beat":
                pass
            case "open":
                self._open(message)
            case "route":
                self._end.send({"is": "routed", **_route(message)})
            case "reserve":
                self._end.send({"is": "reserved", "port": _free_port(message["address"])})
            case "run":
                self._start(message)
            case "signal" if self._round is not None:
                self._round.asked = signal.Signals(message["number"])
            case "end" if self._round is not None:
                Thread(target=self._round.end, args=(message["grace_s"],), daemon=True).start()
            case _:
                pass

    def _open(self, message: Message) -> None:
        self._patience_s = LEASE * message["silence_s"]
        folder = Path(message["folder"]).expanduser()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            os.chdir(folder)
            self._run = Path(message["run"])
            (self._run / "log").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TandemError(f"Cannot use {folder}: {error.strerror}; give another --dir.") from error
        self._take_place()
        shares = (self._run / message["token"]).exists()
        if not shares:
            write_atomic(self._run / "recipe.yaml", message["recipe"].encode())
            self._tail = Tail(self._run / "log", message["received"])
        self._environment = dict(message["environment"])
        self._end.send({"is": "opened", "shares": shares, **_facts(message["device"], message["workers"])})

    def _take_place(self) -> None:
        """Wait until an earlier one of us is gone: its workers still have the GPUs."""
        end_s = time.monotonic() + BUSY_S
        while True:
            try:
                self._place.enter_context(holding(self._run / f"far-{platform.node()}"))
            except BusyError as error:
                if time.monotonic() > end_s:
                    raise TandemError(f"Workers of an earlier start still run there: {error}") from error
                _hurry(beside(self._run.resolve() / f"far-{platform.node()}", "lock"))
                time.sleep(BEAT_S / 10)
            else:
                return

    def _start(self, message: Message) -> None:
        environment = {**self._environment, **message["environment"]}
        self._round = _Round(message, environment=environment, pulses=self._pulses, run=self._run)
        Thread(target=self._carry_out, args=(self._round,), daemon=True).start()

    def _carry_out(self, started: "_Round") -> None:
        try:
            ending = started.carry_out()
            about = {"round": started.number, "newest": _newest_step(self._run), "leaves": self._leaves}
            with suppress(OSError):  # nobody may be there to hear it
                self._send_log()
                self._end.send({"is": "ended", **about, **ending})
        finally:
            started.is_over.set()

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT_S)
            current = self._round
            pulses = {} if current is None else current.pulses()
            number = 0 if current is None else current.number
            try:
                self._end.send({"is": "beat", "round": number, "pulses": pulses})
                self._send_log()
            except OSError:
                return

    def _send_log(self) -> None:
        # One at a time: what one has read, another must not overtake with the news of the end.
        with self._sending:
            for piece in () if self._tail is None else self._tail.pieces():
                self._end.send({"is": "log", "file": piece.file, "offset": piece.offset, "text": piece.text})

    def _watch_head(self) -> None:
        while time.monotonic() - self._heard_s < self._patience_s:
            time.sleep(BEAT_S / 2)
        self._leave()

    def hurry(self) -> None:
        """End at once: the head is back, and has sent another."""
        self._hurried.set()
        Thread(target=self._leave, daemon=True).start()

    def _leave(self) -> None:
        """End workers, if there are any, giving them time to save, and then this process."""
        self._leaves = True
        current = self._round
        if current is not None and not current.is_over.is_set():
            current.asked = current.asked or signal.SIGTERM
            end_s = time.monotonic() + SAVE_S
            while time.monotonic() < end_s and not self._hurried.is_set() and not current.is_over.wait(0.1):
                pass
            current.asked = signal.SIGKILL
            current.is_over.wait(STUCK_S)
        for file in self._pulses.glob("*"):
            file.unlink(missing_ok=True)
        self._pulses.rmdir()
        self._place.close()
        os._exit(0)


class _Round:
    """One start of this host's workers."""

    def __init__(self, message: Message, *, environment: Mapping[str, str], pulses: Path, run: Path) -> None:
        self.number: int = message["round"]
        self.asked: signal.Signals | None = None
        self.is_over = Event()
        self._was_ended = False
        self._message, self._environment, self._folder, self._run = message, environment, pulses, run

    def carry_out(self) -> Message:
        """Run the workers to their end, and say how they ended."""
        meeting = Meeting(**self._message["meeting"])
        with Reports() as reports:
            output = self._run / "log"
            ours = worker_environment(reports.address, workers=self._message["workers"], output=output)
            job = Job(
                command=[sys.executable, "-P", "-m", *self._message["command"]],
                workers=self._message["workers"],
                environment={**ours, **self._environment},
                pulses=self._folder,
                meeting=meeting,
            )
            missed = ""
            failed: Mapping[int, int] = {}
            try:
                failed = run_once(job, asked=lambda: self.asked)
            except (MeetingError, TandemError) as error:
                missed = str(error)
            failures = [asdict(each) for each in reports.received().values()]
        return {"failed": failed, "failures": failures, "missed": missed, "was_ended": self._was_ended}

    def pulses(self) -> Mapping[str, Any]:
        """What this host's workers are doing."""
        standings = read_standings(self._folder)
        return {str(rank): asdict(each) for rank, each in standings.items()}

    def end(self, grace_s: float) -> None:
        """Let the workers end by themselves for a while, so that they can say why; then end them."""
        if not self.is_over.wait(grace_s):
            self._was_ended = True
            self.asked = signal.SIGKILL
            if not self.is_over.wait(STUCK_S):
                # Still in the meeting, which cannot be broken off: this process is started anew.
                os._exit(1)


def _hurry(note: Path) -> None:
    """Have the earlier one of us end, which has lost its head and still waits for its workers to save."""
    pid = int(read_note(note).get("pid", 0))
    with suppress(OSError):
        if b"tandem.launch.far" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGTERM)


def _facts(device: str, workers: int) -> Message:
    chosen, count = choose_hardware(device, workers)
    return {
        "host": platform.node(),
        "tandem": __version__,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "device": chosen,
        "workers": count,
        "cores": cores(),
        "connection": os.environ.get("SSH_CONNECTION", ""),
        "time_s": time.time(),
    }


def _route(message: Message) -> Message:
    """Address and interface by which this host reaches another, or those of the interface that was asked for."""
    nic, to = message["nic"], message["to"]
    if nic:
        address = address_of(nic)
        if address is None:
            raise TandemError(f"{platform.node()} has no interface {nic} with an address: check --nic.")
        return {"address": address, "nic": nic}
    address = source_of(to)
    return {"address": address, "nic": interface_of(address) or ""}


def _free_port(address: str) -> int:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as server:
        server.bind((address, 0))
        port: int = server.getsockname()[1]
    return port


def _newest_step(run: Path) -> int | None:
    infos = list_checkpoints(RunLayout(run).checkpoints)
    return max((info.step for info in infos if info.is_complete), default=None)


def main() -> None:
    """Serve the head at the other end of this process's pipes."""
    # A hang-up comes when ssh's connection breaks; what to do then is decided here.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    host = FarHost(FarEnd())
    signal.signal(signal.SIGTERM, lambda *_: host.hurry())
    host.serve()


if __name__ == "__main__":
    main()
