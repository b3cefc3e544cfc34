"""Messages between two processes, a line of JSON each, over the pipes that one has to the other."""

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import IO, Any

__all__ = ["GONE", "LONGEST_LINE", "Channel", "FarEnd", "Message"]

Message = Mapping[str, Any]

GONE = "gone"
"""The last message of a channel, made on the near side: the process ended with "code", having "said" something.

Where this side broke off, "why" says the reason.
"""
LONGEST_LINE = 4 << 20
"""Bytes of a message: twice the largest, a piece of a log of which every byte is written as six."""
_KEPT_LINES = 40
_KEPT_BYTES = 4_000
"""Of a line that is no message."""


class Channel:
    """The near end: a process that was started here, most often ssh, and what it says.

    Nothing here waits for the other side: a host whose link is cut must not hold up the others. Nor does it trust it:
    a line without an end, or a message that cannot be taken, ends the channel and nothing else.
    """

    def __init__(self, words: Sequence[str], *, on_message: Callable[[Message], None]) -> None:
        """Start the process; `on_message` is called from a thread of the channel's, with GONE at last."""
        self._process = subprocess.Popen(  # noqa: S603 - an argument list, no shell on this side
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for us alone: we tell the others what to do
        )
        self._on_message = on_message
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        self._said: deque[str] = deque(maxlen=_KEPT_LINES)
        listening = Thread(target=self._listen, daemon=True)
        self._erring = Thread(target=self._keep_errors, daemon=True)
        for thread in (Thread(target=self._talk, daemon=True), self._erring, listening):
            thread.start()

    def send(self, message: Message) -> None:
        """Send soon; one that cannot be delivered is lost with the channel."""
        self._outgoing.put(json.dumps(message).encode() + b"\n")

    def close(self) -> None:
        """Send what is waiting, then tell the other side that nothing more will come."""
        self._outgoing.put(None)

    def kill(self) -> None:
        """Break off."""
        self._process.kill()

    def _talk(self) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        try:
            while (data := self._outgoing.get()) is not None:
                pipe.write(data)
                if self._outgoing.empty():
                    pipe.flush()
        except OSError:
            pass  # the listener says so
        finally:
            with suppress(OSError):
                pipe.close()

    def _listen(self) -> None:
        pipe = self._process.stdout
        assert pipe is not None
        with pipe:
            why = self._hear(pipe)
        if why:
            self.kill()
        code = self._process.wait()
        self._erring.join()
        self.close()
        gone: Message = {
            "is": GONE,
            "code": code,
            "said": "\n".join([*self._said, why] if why else self._said),
        }
        self._on_message({**gone, "why": why} if why else gone)

    def _hear(self, pipe: IO[bytes]) -> str:
        """Pass on what comes, until nothing more does; gives why this side has heard enough, if it has."""
        while line := pipe.readline(LONGEST_LINE + 1):
            if len(line) > LONGEST_LINE:
                return f"it sent a line of more than {LONGEST_LINE >> 20} MiB"
            message = _maybe_message(line)
            if message is None or message.get("is") == GONE:
                self._keep(line)
                continue
            try:
                self._on_message(message)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the listener must not end
                return f"it sent what makes no sense here ({type(error).__name__})"
        return ""

    def _keep_errors(self) -> None:
        pipe = self._process.stderr
        assert pipe is not None
        with pipe:
            while line := pipe.readline(_KEPT_BYTES):
                self._keep(line)

    def _keep(self, line: bytes) -> None:
        if text := line[:_KEPT_BYTES].decode(errors="replace").rstrip():
            self._said.append(text)


class FarEnd:
    """The far end: this process, which was started through a channel and answers over its standard output.

    What libraries print there from now on goes to standard error instead: it must not get between the messages.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._output = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        # What a login script printed without an end of line must not spoil the first message.
        self._output.write(b"\n")

    def send(self, message: Message) -> None:
        """Send; waits while the link cannot take more."""
        data = json.dumps(message).encode() + b"\n"
        with self._lock:
            self._output.write(data)
            self._output.flush()

    def messages(self) -> Iterator[Message]:
        """What the other side sends, until it closes or is gone."""
        for line in sys.stdin.buffer:
            if (message := _maybe_message(line)) is not None:
                yield message


def _maybe_message(line: bytes) -> Message | None:
    """A message; None for anything else, such as what a login script on the other host prints."""
    try:
        held = json.loads(line)
    except (ValueError, RecursionError):  # the latter for brackets without end
        return None
    return held if isinstance(held, dict) and len({"is", "do"} & held.keys()) == 1 else None
