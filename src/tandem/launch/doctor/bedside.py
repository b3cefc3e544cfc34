"""Asking one host: a far process over ssh, requests to it, and answers that may never come."""

import subprocess
import time
from concurrent.futures import Future
from itertools import count
from typing import Any

from tandem.errors import TandemError
from tandem.launch.channel import GONE, Channel, Message
from tandem.launch.ssh import CONNECT_S, Ssh

__all__ = ["ARRIVAL_S", "Bedside", "NoAnswerError"]

ARRIVAL_S = CONNECT_S + 20.0
"""How long a host may take from the call to the first word: a cold disk reads Python's files slowly."""
_LEAVE_S = 2.0
_PATIENCE_S = 5.0
_LOST = 255
_ASK_VERSION = "import tandem; print(tandem.__version__)"


class NoAnswerError(TandemError):
    """A host did not answer, or said that it could not."""


class Bedside:
    """A host that is being examined."""

    def __init__(self, host: str, ssh: Ssh) -> None:
        self.host = host
        self._ssh = ssh
        self._numbers = count(1)
        self._asked: dict[int, Future[Any]] = {}
        self._here: Future[float] = Future()
        self._gone: Future[None] = Future()
        self._why_gone = ""
        self.tandem = ""
        """The version there, as said at arrival."""
        self.lost = ""
        """Why the host is not asked any more; empty while it answers."""
        self._begin = time.monotonic()
        self._channel = Channel(ssh.module(host, "tandem.launch.doctor.far"), on_message=self._hear)

    def arrive(self) -> float:
        """Wait until the host answers; gives how many seconds that took."""
        try:
            return self._here.result(ARRIVAL_S)
        except TimeoutError:
            raise NoAnswerError(
                f"{self.host} does not answer within {ARRIVAL_S:.0f} s: look at its load and its disk."
            ) from None

    def ask(self, do: str, **what: object) -> "Future[Any]":
        """Send a request; `wait` has the answer."""
        number = next(self._numbers)
        future: Future[Any] = Future()
        self._asked[number] = future
        if not self.lost:
            self._channel.send({"do": do, "number": number, **what})
        if self.lost:
            self._give_up()
        return future

    def wait(self, future: "Future[Any]", *, limit_s: float) -> Any:
        """The answer; NoAnswerError if it does not come in time."""
        try:
            return future.result(limit_s)
        except TimeoutError:
            self.lost = (
                f"{self.host} does not answer any more, for {limit_s:.0f} s: look at its link and its load."
            )
            self._give_up()
            raise NoAnswerError(self.lost) from None

    def is_there(self) -> bool:
        """Whether the host still answers."""
        try:
            self.get("clock", limit_s=_PATIENCE_S)
        except NoAnswerError:
            return False
        return True

    def get(self, do: str, *, limit_s: float, **what: object) -> Any:
        """Ask and wait."""
        return self.wait(self.ask(do, **what), limit_s=limit_s)

    def leave(self) -> None:
        """Let the far process end, or end it."""
        self._channel.close()
        try:
            self._gone.result(_LEAVE_S)
        except TimeoutError:
            self._channel.kill()

    def _hear(self, message: Message) -> None:
        if message["is"] == "here":
            self.tandem = str(message.get("tandem", ""))
            self._here.set_result(time.monotonic() - self._begin)
        elif message["is"] == "answer":
            future = self._asked.pop(message["number"], None)
            if future is None:
                return  # given up already
            if "error" in message:
                future.set_exception(NoAnswerError(f"{self.host}: {message['error']}"))
            else:
                future.set_result(message["value"])
        elif message["is"] == GONE:
            self._end(message)

    def _end(self, message: Message) -> None:
        self._why_gone = self._explain(message["code"], message["said"])
        self.lost = self.lost or self._why_gone
        self._gone.set_result(None)
        if not self._here.done():
            self._here.set_exception(NoAnswerError(self.lost))
        self._give_up()

    def _give_up(self) -> None:
        """Let all know who wait for an answer; whoever takes a future out is the only one to set it."""
        for number in list(self._asked):
            if (future := self._asked.pop(number, None)) is not None:
                future.set_exception(NoAnswerError(self.lost))

    def _explain(self, code: int, said: str) -> str:
        """Why it ended; an old Tandem has no doctor, but can tell its version."""
        if self._here.done() and code == _LOST:
            return f"{self.host} does not answer any more: look at its link and its load."
        if self._here.done() or "No module named" not in said:
            return self._ssh.explain(self.host, code, said)
        words = self._ssh.command(self.host, [self._ssh.python, "-P", "-c", _ASK_VERSION])
        try:
            result = subprocess.run(words, capture_output=True, text=True, timeout=ARRIVAL_S, check=True)  # noqa: S603
        except (subprocess.SubprocessError, OSError):
            return self._ssh.explain(self.host, code, said)
        return f"{self.host} has Tandem {result.stdout.strip()}, which has no doctor: install the same version as here."
