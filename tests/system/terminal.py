"""A real terminal, which tmux gives, and what stands on it."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["Terminal"]

DEADLINE_S = 120.0


class Terminal:
    """A shell in a terminal of tmux, on a server of its own."""

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / "tmux")
        environment = {
            key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "TMUX")
        }
        shell = "env PS1='$ ' sh"
        self._tmux(
            "-f/dev/null", "new-session", "-d", "-x80", "-y24", "-c", str(folder), shell, env=environment
        )

    def _tmux(self, *words: str, env: dict[str, str] | None = None) -> str:
        command = ["tmux", "-S", self._socket, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout

    def text(self) -> str:
        return self._tmux("capture-pane", "-p")

    def all_text(self) -> str:
        """With what has left the screen at its top."""
        return self._tmux("capture-pane", "-p", "-S-100")

    def run(self, command: str) -> None:
        self._tmux("send-keys", "-l", command)
        self._tmux("send-keys", "Enter")

    def press(self, key: str) -> None:
        self._tmux("send-keys", key)

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", f"-x{width}", f"-y{height}")

    def is_set(self, flag: str) -> bool:
        return self._tmux("display-message", "-p", f"#{{{flag}}}").strip() == "1"

    def until(self, is_there: Callable[[str], bool]) -> str:
        """Wait for what is on the screen."""
        deadline = time.monotonic() + DEADLINE_S
        while not is_there(text := self.text()):
            assert time.monotonic() < deadline, text
            time.sleep(0.05)
        return text

    def close(self) -> None:
        self._tmux("kill-server")
