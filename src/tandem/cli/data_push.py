"""`tandem data push`: prepared data on hosts that do not share the disk."""

# Imports wait until a command runs, so that --help answers at once.

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tandem.cli.hosts import Dir, HostsOptions, Python, SshConfig, far_place, reach
from tandem.errors import TandemError

if TYPE_CHECKING:
    from tandem.config import Recipe

__all__ = ["push_data"]

_MADE_BY = ("subword.", "clean.")


def push_data(
    recipe: Annotated[Path, typer.Argument(help="The recipe, a YAML file, whose data is prepared here.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="Values to change: a.b=c …")] = None,
    *,
    hosts: Annotated[str, typer.Option(help="Hosts as a,b or user@a,b, or a file with a host a line.")],
    ssh_config: SshConfig = None,
    python: Python = None,
    far_folder: Dir = "",
) -> None:
    """Copy the recipe's prepared data to other hosts: only what they lack, and on from where it broke off."""
    from tandem.cli.bars import Bars
    from tandem.config import load_recipe
    from tandem.launch.push import push

    loaded = load_recipe(recipe, overrides or ()).recipe
    _refuse_stale(loaded)
    found, ssh = reach(HostsOptions(hosts=hosts, ssh_config=ssh_config, python=python))
    names = [host.name for host in found]
    source = loaded.prepared_folder.resolve()
    with Bars() as progress:
        push(source, names, ssh, folder=far_place(source, far_folder), progress=progress)
    typer.echo(f"All of {', '.join(names)} {'have' if len(names) > 1 else 'has'} the data.")


def _refuse_stale(recipe: "Recipe") -> None:
    """Only what is made from the text can be stale; what the text is, is known where it lies."""
    from tandem.config import differences
    from tandem.data.prepared import open_prepared

    prepared = open_prepared(recipe.prepared_folder)
    changed = [key for key in differences(prepared.recipe, recipe) if key.startswith(_MADE_BY)]
    if changed:
        raise TandemError(
            f"{recipe.prepared_folder} was prepared with another {changed[0]}: prepare it again with tandem data "
            "prepare, then push."
        )
