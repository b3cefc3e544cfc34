"""A lab: made, used and removed."""

import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any, Self

from tandem.errors import TandemError
from tandem.lab import network, process
from tandem.lab.command import check_fitness, program
from tandem.lab.entry import inside, wiring
from tandem.lab.layout import Layout
from tandem.lab.link import Link, changed, read_delay, read_rate
from tandem.lab.ssh import write_ssh
from tandem.lab.state import Host, Started, State, maybe_read_state, read_state, write_state
from tandem.lock import holding

__all__ = ["Lab"]

_MOST_HOSTS = 100
_PATIENCE_S = 20.0


class Lab:
    """Hosts h1, h2, … on one switch, each with a network, a name, a disk folder and an sshd of its own."""

    def __init__(self, folder: Path) -> None:
        """Use the lab in a folder, which another process may have made."""
        self._layout = Layout(folder.resolve())

    @classmethod
    def up(cls, folder: Path, *, hosts: int = 3, rate: str = "none", delay: str = "0ms") -> Self:
        """Make a lab in a folder that is new or empty; whatever stops it, nothing half-made stays behind."""
        check_fitness()
        if not 1 <= hosts <= _MOST_HOSTS:
            raise TandemError(f"A lab has 1 to {_MOST_HOSTS} hosts, not {hosts}: ask for as many.")
        link = Link(rate_bits=read_rate(rate), delay_s=read_delay(delay))
        lab = cls(folder)
        with holding(lab.folder):
            made_folder = lab._claim()
            try:
                lab._raise(_plan(hosts, link, made_folder=made_folder))
            except BaseException:
                lab._remove()
                raise
        return lab

    @property
    def folder(self) -> Path:
        """Where the lab's files lie."""
        return self._layout.folder

    @property
    def hosts(self) -> list[str]:
        """The names of the hosts."""
        return list(read_state(self.folder).hosts)

    @property
    def is_running(self) -> bool:
        """Whether the machine still runs that made the lab: after another start only its files are left."""
        return read_state(self.folder).boot == process.read_boot()

    @property
    def ssh_config(self) -> Path:
        """For `ssh -F`, here and in the hosts."""
        return self._layout.ssh_config

    def address(self, host: str) -> str:
        """The IP address of a host."""
        return read_state(self.folder).host(host).address

    def home(self, host: str) -> Path:
        """A host's own disk folder."""
        return self._layout.home(read_state(self.folder).host(host).name)

    def link_of(self, host: str) -> Link:
        """What a host's link is like now."""
        return read_state(self.folder).host(host).link

    def command(self, host: str, words: Sequence[str], *, cwd: Path | None = None) -> list[str]:
        """The argument list that runs a command in a host; without `cwd`, in its home."""
        check_fitness()
        if not self.is_running:
            raise TandemError(f"The machine started anew after {self.folder} was made: `tandem lab down` it.")
        return inside(self.folder, host, words, cwd=cwd or self.home(host))

    def exec(
        self, host: str, words: Sequence[str], *, cwd: Path | None = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a host to its end; options are those of `subprocess.run`."""
        return subprocess.run(self.command(host, words, cwd=cwd), text=True, **options)  # noqa: PLW1510, S603

    def start(
        self, host: str, words: Sequence[str], *, cwd: Path | None = None, **options: Any
    ) -> "subprocess.Popen[str]":
        """Start a command in a host; options are those of `subprocess.Popen`."""
        return subprocess.Popen(self.command(host, words, cwd=cwd), text=True, **options)  # noqa: S603

    def ssh(self, host: str) -> list[str]:
        """The argument list that a command for a host is put behind: over the host's link, by its sshd."""
        return [program("ssh"), "-F", str(self.ssh_config), read_state(self.folder).host(host).name]

    def link(self, host: str, *words: str) -> Link:
        """Change a host's link: "down", "up", "rate", "200mbit", "delay", "5ms", "loss", "1%"."""
        check_fitness()
        with holding(self.folder):
            found = read_state(self.folder).host(host)
            link = changed(found.link, words)
            self._connect(replace(found, link=link), relay=link.delay_s != found.link.delay_s)
        return link

    def signal(self, host: str, number: signal.Signals) -> None:
        """Send a signal to every process of a host: SIGKILL is a power cut, SIGSTOP a host that hangs."""
        process.signal_all(read_state(self.folder).host(host).namespace, number)

    def boot(self, host: str) -> None:
        """Start the sshd of a host again after a power cut."""
        with holding(self.folder):
            self._serve(read_state(self.folder).host(host))

    def down(self) -> None:
        """Remove all that the lab is made of, and nothing else; does nothing where there is none."""
        if maybe_read_state(self.folder) is None:
            return
        check_fitness()
        with holding(self.folder):
            self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    def _claim(self) -> bool:
        """Check that the folder is free; gives whether it has to be made."""
        if maybe_read_state(self.folder) is not None:
            raise TandemError(f"There is a lab in {self.folder} already: remove it with `tandem lab down`.")
        if self.folder.is_relative_to("/run"):
            raise TandemError(
                f"{self.folder} cannot hold a lab, whose hosts have a /run of their own: use another."
            )
        if not self.folder.exists():
            return True
        # A lab that was killed before it made anything leaves this much.
        if any(not path.name.startswith(".lab.json.") for path in self.folder.iterdir()):
            raise TandemError(f"{self.folder} is not empty: name a new folder for the lab.")
        return False

    def _raise(self, state: State) -> None:
        layout = self._layout
        self.folder.mkdir(parents=True, exist_ok=True)
        write_state(self.folder, state)
        layout.files.mkdir(mode=0o700)
        for name in state.hosts:
            layout.home(name).mkdir(parents=True)
        write_ssh(layout, state)
        network.raise_switch(state)
        for host in state.hosts.values():
            network.raise_host(state, host)
            self._connect(host, relay=True)
        for name in state.hosts:
            self._serve(read_state(self.folder).host(name))

    def _connect(self, host: Host, *, relay: bool) -> None:
        """Bring a host's link into the state that `host` describes; `relay`: also its delay."""
        state = read_state(self.folder)
        if relay:
            if host.wire is not None and self.is_running:
                process.end(host.wire)
            network.plug(state, host)
            wire = None
            if host.link.delay_s:
                log = self._layout.log("wire", host.name)
                ends = (host.name, network.wire_ends(host)[0])
                wire = _launch(wiring(state.switch, ends, delay_s=host.link.delay_s, log=log))
            host = replace(host, wire=wire)
        write_state(self.folder, state.having(host))
        network.shape(state, host)

    def _serve(self, host: Host) -> None:
        """Start a host's sshd, unless it runs, and wait until it listens."""
        if host.sshd is not None and process.is_alive(host.sshd):
            return
        layout = self._layout
        log = layout.log("sshd", host.name)
        words = [program("sshd"), "-D", "-e", "-f", str(layout.sshd_config(host.name))]
        sshd = _launch(inside(self.folder, host.name, words, cwd=layout.home(host.name), log=log))
        write_state(self.folder, read_state(self.folder).having(replace(host, sshd=sshd)))
        _await(lambda: _is_listening(sshd), sshd, log=log)

    def _remove(self) -> None:
        state = maybe_read_state(self.folder)
        if state is None:
            return
        if state.boot == process.read_boot():
            for started in (each for host in state.hosts.values() for each in (host.sshd, host.wire)):
                if started is not None:
                    process.end(started)
            for namespace in state.namespaces:
                process.end_all(namespace)
                network.remove_namespace(namespace)
        for path in self._layout.all:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        # Last, since all that is left before is found by it.
        for path in (*self.folder.glob(".lab.json.*.tmp"), self.folder / "lab.json"):
            path.unlink(missing_ok=True)
        if state.made_folder and not any(self.folder.iterdir()):
            self.folder.rmdir()


def _plan(count: int, link: Link, *, made_folder: bool) -> State:
    tag = token_hex(4)
    subnet = network.choose_network(list(network.read_routes()), tag)
    addresses = [str(address) for address in subnet.hosts()]
    hosts = [
        Host(name=f"h{number}", namespace=f"tandem-{tag}-h{number}", address=addresses[number - 1], link=link)
        for number in range(1, count + 1)
    ]
    return State(
        boot=process.read_boot(),
        switch=f"tandem-{tag}-switch",
        gateway=addresses[-1],
        prefix=subnet.prefixlen,
        made_folder=made_folder,
        hosts={host.name: host for host in hosts},
    )


def _launch(words: Sequence[str]) -> Started:
    """Start something that goes on in the background and prints its number."""
    result = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)  # noqa: S603
    if result.returncode != 0:
        reason = (result.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise TandemError(f"A host of the lab does not start ({reason}): a lab needs all rights of root.")
    try:
        return process.identify(int(result.stdout))
    except ProcessLookupError:
        raise TandemError(f"A process of the lab ended at once: {words[-1]}.") from None


def _await(is_ready: Callable[[], bool], started: Started, *, log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not is_ready():
        if not process.is_alive(started) or time.monotonic() > deadline:
            said = " ".join(log.read_text(errors="replace").split()[-40:]) if log.exists() else ""
            raise TandemError(f"sshd does not start in the lab ({said or 'it said nothing'}): mend that.")
        time.sleep(0.01)


def _is_listening(sshd: Started) -> bool:
    try:
        table = Path(f"/proc/{sshd.pid}/net/tcp").read_text()
    except OSError:
        return False
    # Port 22 in hex, and the state that listens.
    return any(row.split()[1].endswith(":0016") and row.split()[3] == "0A" for row in table.splitlines()[1:])
