"""`tandem resume`: a run goes on where it stopped."""

# Imports wait until a command runs, so that --help answers at once.

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tandem.cli.forward import ForwardTo
from tandem.cli.hosts import (
    Dir,
    Hosts,
    HostsOptions,
    HostTimeout,
    MinHosts,
    Network,
    Nic,
    Port,
    Python,
    SshConfig,
)
from tandem.cli.train import BatchTokens, Device, Exchange, Fit, Plain, Restarts, Workers, ordered
from tandem.cli.training import How, train_here
from tandem.errors import TandemError

if TYPE_CHECKING:
    from tandem.config import Recipe

__all__ = ["resume"]


def resume(
    run: Annotated[Path, typer.Argument(help="The run's folder.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Values to change: when to stop, evaluate and save.")
    ] = None,
    *,
    workers: Workers = 0,
    device: Device = "auto",
    fit: Fit = False,
    batch_tokens: BatchTokens = None,
    exchange: Exchange = "",
    restarts: Restarts = 3,
    plain: Plain = False,
    forward: ForwardTo = "",
    hosts: Hosts = None,
    min_hosts: MinHosts = 1,
    host_timeout: HostTimeout = 20.0,
    ssh_config: SshConfig = None,
    python: Python = None,
    far_folder: Dir = "",
    nic: Nic = "",
    port: Port = 0,
    network: Network = "any",
) -> None:
    """Go on with a run from its newest checkpoint, on as many workers as you like."""
    file = run / "recipe.yaml"
    if not file.is_file():
        raise TandemError(f"There is no run in {run} (it has no {file.name}): begin one with tandem train.")
    wanted = _changed(file, ordered(overrides, exchange))
    how = How(
        workers=workers,
        device=device,
        fit=fit,
        batch_tokens=batch_tokens,
        restarts=restarts,
        plain=plain,
        forward=forward,
        hosts=None
        if hosts is None
        else HostsOptions(
            hosts=hosts,
            workers=workers,
            ssh_config=ssh_config,
            python=python,
            folder=far_folder,
            nic=nic,
            port=port,
            network=network,
            min_hosts=min_hosts,
            timeout_s=host_timeout,
        ),
    )
    train_here(wanted, run, how)


def _changed(file: Path, changes: list[str]) -> "Recipe":
    """The recipe that a run was begun with, with other values where a run may have them."""
    from tandem.config import differences, load_recipe, may_change_on_resume

    begun, wanted = (load_recipe(file, values).recipe for values in ((), changes))
    for key in differences(begun, wanted):
        if not may_change_on_resume(key):
            raise TandemError(
                f"{key} cannot change in a run that was begun with another value: leave it out, or begin another "
                "run with tandem train --run."
            )
    return wanted
