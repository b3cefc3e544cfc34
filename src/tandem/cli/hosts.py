"""A run on several hosts, as the command line has it: which ones, how they are reached, what they need."""

# Imports wait until a command runs, so that --help answers at once.

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from secrets import token_hex
from typing import TYPE_CHECKING, Annotated

import typer

from tandem.errors import TandemError

if TYPE_CHECKING:
    from tandem.config import Recipe
    from tandem.launch.crew import HostCrew
    from tandem.launch.hosts import Host
    from tandem.launch.ssh import Ssh
    from tandem.progress import Progress
    from tandem.runlog.writer import RunLog

__all__ = [
    "Dir",
    "HostTimeout",
    "Hosts",
    "HostsOptions",
    "MinHosts",
    "Network",
    "Nic",
    "Port",
    "Python",
    "SshConfig",
    "crew_on_hosts",
    "equip",
    "far_place",
    "reach",
]

Hosts = Annotated[
    str | None,
    typer.Option(help="These hosts, over ssh: a,b or user@a:2,b:2, or a file with a host a line."),
]
SshConfig = Annotated[
    Path | None, typer.Option(envvar="TANDEM_SSH_CONFIG", help="Settings for ssh in place of your own.")
]
Python = Annotated[
    str | None, typer.Option(help="The Python of Tandem on the hosts; the same place as here if not given.")
]
Dir = Annotated[
    str,
    typer.Option(
        "--dir", help="The working folder on the hosts; as here if not given, relative: to the home."
    ),
]
Nic = Annotated[str, typer.Option(help="The network interface of the hosts; found if not given.")]
Port = Annotated[
    int, typer.Option(min=0, max=65535, help="Where each host listens for the others; 0: any free port.")
]
Network = Annotated[
    str,
    typer.Option(
        help="What is between the hosts: any, so all is encrypted; trusted, so nothing is, and NCCL joins GPUs."
    ),
]
HostTimeout = Annotated[
    float, typer.Option(min=4.0, help="Seconds of silence after which a host counts as lost.")
]
MinHosts = Annotated[int, typer.Option(min=1, help="Go on while so many hosts are left.")]

_FORWARDED = ("NCCL_", "GLOO_", "TORCH_", "OMP_NUM_THREADS")
NETWORKS = ("any", "trusted")
_LABS = Path("/var/lib/tandem/labs")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsOptions:
    """Which hosts, and how to reach them."""

    hosts: str
    workers: int = 0
    """On each host that has no number of its own."""
    ssh_config: Path | None = None
    python: str | None = None
    folder: str = ""
    nic: str = ""
    port: int = 0
    network: str = "any"
    min_hosts: int = 1
    timeout_s: float = 20.0

    @property
    def words(self) -> list[str]:
        """As they are on a command line."""
        given = {"--hosts": self.hosts, "--dir": self.folder, "--python": self.python, "--nic": self.nic}
        given["--network"] = "" if self.network == "any" else self.network
        given["--ssh-config"] = "" if self.ssh_config is None else str(self.ssh_config)
        return [word for option, value in given.items() if value for word in (option, value)]


def reach(options: HostsOptions) -> tuple[tuple["Host", ...], "Ssh"]:
    """The hosts that were named, and the way to them."""
    from tandem.launch.hosts import read_hosts
    from tandem.launch.ssh import Ssh

    if options.network not in NETWORKS:
        raise TandemError(f"--network {options.network} is no network: give {' or '.join(NETWORKS)}.")
    hosts = tuple(
        replace(host, workers=host.workers or options.workers) for host in read_hosts(options.hosts)
    )
    if options.min_hosts > len(hosts):
        raise TandemError(
            f"--min-hosts {options.min_hosts} is more than the {len(hosts)} hosts that were named."
        )
    config = options.ssh_config
    if config is not None and not config.is_file():
        raise TandemError(f"There is no file {config}: check --ssh-config.")
    config = config or _maybe_lab([host.name for host in hosts])
    return hosts, Ssh(config=config) if options.python is None else Ssh(config=config, python=options.python)


def far_place(path: Path, folder: str = "") -> str:
    """Where a path of ours is on the other hosts: below the working folder there if it is below ours, else the same."""
    here = Path.cwd()
    path = here / path
    if not path.is_relative_to(here):
        return str(path)
    return str(PurePosixPath(folder or here) / path.relative_to(here))


@contextmanager
def crew_on_hosts(
    recipe: "Recipe",
    run: Path,
    options: HostsOptions,
    *,
    device: str,
    words: Sequence[str],
    log: "RunLog",
    prepare: Callable[[int], None],
) -> Iterator["HostCrew"]:
    """Reach all hosts and give them what they need; inside the block they can train.

    `words` go to every rank's command line; `prepare` makes the data ready here, knowing the number of ranks.
    """
    from tandem.artefact import write_atomic
    from tandem.cli.bars import Bars
    from tandem.launch.crew import HostCrew
    from tandem.launch.run_settings import RunSettings
    from tandem.runlog.layout import RunLayout

    hosts, ssh = reach(options)
    token = f".head-{token_hex(8)}"
    task = RunSettings(
        folder=options.folder or str(Path.cwd()),
        run=_relative(run),
        recipe=_far_recipe(recipe, run),
        token=token,
        device=device,
        options=words,
        environment={name: value for name, value in os.environ.items() if name.startswith(_FORWARDED)},
        nic=options.nic,
        port=options.port,
        is_network_trusted=options.network == "trusted",
        min_hosts=options.min_hosts,
        silence_s=options.timeout_s,
    )
    names = [host.name for host in hosts]

    def equip_again(name: str) -> None:
        from tandem.progress import SILENT

        equip(recipe, [name], ssh, options.folder, SILENT)

    run.mkdir(parents=True, exist_ok=True)
    (run / token).touch()
    crew = HostCrew(hosts, task, ssh=ssh, log=log, copy=RunLayout(run).log, equip=equip_again)
    try:
        with Bars() as progress, progress.bar(f"Reaching {', '.join(names)}"):
            crew.connect()
        prepare(crew.workers)
        # On a disk that the hosts share but have elsewhere, the data are found from the run's folder.
        write_atomic(run / "recipe.yaml", task.recipe.encode())
        with Bars() as progress:
            equip(recipe, names, ssh, options.folder, progress)
        _examine(recipe, hosts, ssh, options, log)
        yield crew
    finally:
        crew.close()
        (run / token).unlink(missing_ok=True)


def _examine(
    recipe: "Recipe", hosts: Sequence["Host"], ssh: "Ssh", options: HostsOptions, log: "RunLog"
) -> None:
    """Look at hosts and links shortly, for the log; TandemError where the hosts cannot reach each other."""
    from tandem.cli.bars import Bars
    from tandem.launch.doctor.judge import judge
    from tandem.launch.doctor.look import look
    from tandem.observe.visible import visible

    if len(hosts) == 1:
        return
    with Bars() as progress, progress.bar("Measuring the links"):
        folder = options.folder or str(Path.cwd())
        found = look(hosts, ssh, folder=folder, recipe=recipe, port=options.port, nic=options.nic, brief=True)
    for event in found.events():
        log.log(event)
    for line in judge(found):
        # Who trains over a link that crawls is told what it costs, and may have no other.
        if line.verdict == "broken" and line.what in ("ports", "link") and not line.step_s:
            raise TandemError(f"{line.host}, {line.what}: {line.value}; {line.cure}")
        if line.verdict != "fine":
            told = f"warning: {line.host}, {line.what}: {line.value}; {line.cure}"
            typer.echo(visible(told), err=True)


def equip(recipe: "Recipe", hosts: Sequence[str], ssh: "Ssh", folder: str, progress: "Progress") -> None:
    """Give the hosts the prepared data that they lack; TandemError where one has other data in its place."""
    from tandem.launch.push import compare, push

    source = recipe.prepared_folder.resolve()
    place = far_place(source, folder)
    found = compare(source, hosts, ssh, folder=place)
    for host, standing in found.items():
        if standing.state == "different":
            raise TandemError(
                f"{host} has other data than this machine: {standing.file or place} differs; replace it with "
                f"tandem data push --hosts {host}, or give another --dir."
            )
    missing = [host for host, standing in found.items() if standing.state == "missing"]
    if missing:
        push(source, missing, ssh, folder=place, progress=progress)


def _relative(path: Path) -> str:
    path, here = Path.cwd() / path, Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _far_recipe(recipe: "Recipe", run: Path) -> str:
    """The recipe as a host needs it that has its own disk, in the run's folder there."""
    from tandem.config import recipe_yaml

    here = Path.cwd()
    data, home = recipe.prepared_folder.resolve(), (here / run).resolve()
    movable = data.is_relative_to(here) and home.is_relative_to(here)
    folder = Path(os.path.relpath(data, home)) if movable else data
    return recipe_yaml(recipe.model_copy(update={"data": recipe.data.model_copy(update={"folder": folder})}))


def _maybe_lab(names: Sequence[str]) -> Path | None:
    """The ssh settings of a lab on this machine that has these hosts, if no other network knows them."""
    labs = Path(os.environ.get("TANDEM_LABS", _LABS))
    for state in sorted(labs.glob("*/lab.json")):
        config = state.parent / "ssh_config"
        known = {line.split()[1] for line in _lines(config) if line.startswith("Host ")}
        if set(names) <= known and not any(_is_known(name) for name in names):
            typer.echo(f"{', '.join(names)}: hosts of the lab in {state.parent}.", err=True)
            return config
    return None


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


def _is_known(name: str) -> bool:
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return False
    return True
