"""`tandem lab`: several hosts with real links on one Linux machine."""

# Imports wait until a command runs, so that --help answers at once.

import os
import re
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Never

import typer

from tandem.errors import TandemError
from tandem.process import user_environment

if TYPE_CHECKING:
    from tandem.lab import Lab

__all__ = ["app"]

app = typer.Typer(
    help="Makes several hosts with real links on one Linux machine, for learning and for tests.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_FOLDER = Path("/var/lib/tandem/labs")
_Name = Annotated[str, typer.Option("--name", help="Which lab; there may be several beside each other.")]
_Folder = Annotated[
    Path,
    typer.Option("--folder", envvar="TANDEM_LABS", help="Where labs are kept, each in a folder of its name."),
]
_Host = Annotated[str, typer.Argument(help="A host: h1, h2, …", metavar="HOST")]


@app.command("up")
def up(
    *,
    hosts: Annotated[int, typer.Option("--hosts", help="How many hosts.")] = 3,
    rate: Annotated[str, typer.Option("--rate", help="Of each host's link: 200mbit, 1gbit, none.")] = "none",
    delay: Annotated[
        str, typer.Option("--delay", help="From host to host, one way: 0.2ms; there and back is twice that.")
    ] = "0ms",
    name: _Name = "lab",
    folder: _Folder = _FOLDER,
) -> None:
    """Make hosts h1, h2, … on one switch, each with its own network, name, disk folder and sshd."""
    from tandem.lab import Lab

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    lab = Lab.up(_place(folder, name), hosts=hosts, rate=rate, delay=delay)
    _show(lab, name)
    option = "" if name == "lab" else f" --name {name}"
    typer.echo(f"  tandem lab exec{option} h1 -- COMMAND   or   ssh -F {lab.ssh_config} h1")


@app.command("list")
def show(*, folder: _Folder = _FOLDER) -> None:
    """List the labs, their hosts and the state of the links."""
    from tandem.lab import Lab

    found = sorted(path.parent for path in folder.glob("*/lab.json"))
    for path in found:
        _show(Lab(path), path.name)
    if not found:
        typer.echo(f"There is no lab in {folder}.")


@app.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def execute(
    host: _Host,
    command: Annotated[list[str], typer.Argument(help="What to run there, in the host's own folder.")],
    *,
    name: _Name = "lab",
    folder: _Folder = _FOLDER,
) -> None:
    """Run a command in a host, as `tandem lab exec h1 -- hostname`; its exit status is this one's."""
    words = _open(folder, name).command(host, command[command[0] == "--" :])
    sys.stdout.flush()
    os.execve(words[0], words, user_environment())  # noqa: S606


@app.command("link")
def link(
    host: _Host,
    change: Annotated[
        list[str], typer.Argument(help="down, up, rate 200mbit, delay 5ms, loss 1%; also several in a row.")
    ],
    *,
    name: _Name = "lab",
    folder: _Folder = _FOLDER,
) -> None:
    """Change a host's link: cut it, mend it, make it slower, longer or lossy."""
    from tandem.lab.link import describe

    typer.echo(f"{host}: {describe(_open(folder, name).link(host, *change))}")


@app.command("down")
def down(*, name: _Name = "lab", folder: _Folder = _FOLDER) -> None:
    """Stop what runs in the hosts and remove the lab with its hosts' folders; nothing else is touched."""
    from tandem.lab import Lab

    lab = Lab(_place(folder, name))
    was_there = (lab.folder / "lab.json").exists()
    lab.down()
    typer.echo(f"lab {name} is removed." if was_there else f"There is no lab {name} in {folder}.")


def _place(folder: Path, name: str) -> Path:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,30}", name):
        raise TandemError(f"{name!r} cannot name a lab: use small letters, digits and hyphens.")
    return folder / name


def _open(folder: Path, name: str) -> "Lab":
    from tandem.lab import Lab

    lab = Lab(_place(folder, name))
    if not (lab.folder / "lab.json").exists():
        raise TandemError(f"There is no lab {name} in {folder}: make it with `tandem lab up`.")
    return lab


def _show(lab: "Lab", name: str) -> None:
    from tandem.lab.link import describe

    state = "" if lab.is_running else " (the machine started anew since: remove it with `tandem lab down`)"
    typer.echo(f"lab {name} in {lab.folder}{state}")
    for host in lab.hosts:
        typer.echo(f"  {host:<4} {lab.address(host):<15} {describe(lab.link_of(host))}")


def _leave(number: int, _frame: FrameType | None) -> Never:
    """End by way of the exceptions, so that what is half-made is removed."""
    sys.exit(128 + number)
