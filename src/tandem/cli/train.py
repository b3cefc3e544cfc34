"""`tandem train`: a recipe becomes a model."""

# Imports wait until a command runs, so that --help answers at once.

import os
from contextlib import ExitStack, redirect_stderr, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tandem.cli.forward import ForwardTo, forwarding
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
from tandem.cli.paths import near
from tandem.cli.training import How, make_ready, refuse_other_recipe, reporting, train_here
from tandem.errors import TandemError

if TYPE_CHECKING:
    from tandem.config import Recipe

__all__ = ["BatchTokens", "Device", "Exchange", "Fit", "Plain", "Restarts", "Workers", "ordered", "train"]

Workers = Annotated[
    int, typer.Option(min=0, help="Processes; 0: all GPUs, or on the CPU one, or as many as before.")
]
Device = Annotated[str, typer.Option(help="cpu, cuda, or auto: GPUs where there are any.")]
Fit = Annotated[bool, typer.Option("--fit", help="First find the largest batch that fits into memory.")]
BatchTokens = Annotated[
    int | None, typer.Option(min=1, help="Tokens a side of a batch on one worker; derived if not given.")
]
Restarts = Annotated[
    int,
    typer.Option(min=0, help="How often lost workers are started again without a new checkpoint between."),
]
KeyFolder = Annotated[
    Path | None,
    typer.Option(
        help="Under torchrun, mpirun or srun: a folder of yours that all hosts share, mode 0700, where they exchange "
        "the keys with which they encrypt."
    ),
]
Plain = Annotated[bool, typer.Option("--plain", help="Lines instead of a display.")]
Exchange = Annotated[
    str,
    typer.Option(
        help="How hosts exchange gradients: auto, exact, bf16 or packed; as exchange.mode in the recipe if not given."
    ),
]


def train(
    recipe: Annotated[Path, typer.Argument(help="The recipe, a YAML file.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="Values to change: a.b=c …")] = None,
    *,
    run: Annotated[Path | None, typer.Option(help="The run's folder; runs/NAME if not given.")] = None,
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
    key_folder: KeyFolder = None,
) -> None:
    """Prepare the text if need be and train; the same command goes on where a run was stopped.

    Ctrl-C saves and ends; once more ends at once. Under torchrun, mpirun or srun it is one of the ranks.
    """
    from tandem.config import load_recipe

    loaded = load_recipe(recipe, ordered(overrides, exchange)).recipe
    refuse_other_recipe(loaded, folder := run or Path("runs") / loaded.name)
    if _is_rank(hosts, key_folder):
        alone = _Alone(forward=forward, key_folder=key_folder, is_trusted=network == "trusted")
        _train_as_rank(loaded, folder, alone, device=device, fit=fit, batch_tokens=batch_tokens)
        return
    elsewhere = HostsOptions(
        hosts=hosts or "",
        workers=workers,
        ssh_config=ssh_config,
        python=python,
        folder=far_folder,
        nic=nic,
        port=port,
        network=network,
        min_hosts=min_hosts,
        timeout_s=host_timeout,
    )
    how = How(
        workers=workers,
        device=device,
        fit=fit,
        batch_tokens=batch_tokens,
        restarts=restarts,
        plain=plain,
        forward=forward,
        hosts=None if hosts is None else elsewhere,
    )
    train_here(loaded, folder, how)


def ordered(overrides: list[str] | None, exchange: str) -> list[str]:
    """Values to change, that of --exchange among them; TandemError where an override names another mode."""
    if not exchange:
        return overrides or []
    from tandem.config.document import Document
    from tandem.config.overrides import COMMAND_LINE, overridden

    document = Document(values={}, places={(): COMMAND_LINE})
    for override in overrides or ():
        # What is wrong with others is told when the recipe is loaded.
        with suppress(TandemError):
            document = overridden(document, override)
    section = document.values.get("exchange")
    mode = section.get("mode") if isinstance(section, dict) else None
    if mode not in (None, exchange):
        raise TandemError(f"--exchange {exchange} contradicts exchange.mode={mode}: take one of them out.")
    return [*(overrides or ()), f"exchange.mode={exchange}"]


def _is_rank(hosts: str | None, key_folder: Path | None) -> bool:
    """Whether another launcher started this process as one of its ranks; refuses what does not go with that."""
    from tandem.launch.environment import rank_environment

    os.environ.update(rank_environment(os.environ))
    if {"RANK", "WORLD_SIZE"} <= os.environ.keys():
        if hosts is not None:
            raise TandemError("Another launcher (RANK is set) has chosen the hosts: leave --hosts out.")
        return True
    if key_folder is not None:
        raise TandemError("--key-folder is for ranks that torchrun, mpirun or srun started: leave it out.")
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Alone:
    """What is asked of ranks that have another launcher, beside what to train with."""

    forward: str
    key_folder: Path | None
    is_trusted: bool


def _train_as_rank(
    recipe: "Recipe", run: Path, alone: _Alone, *, device: str, fit: bool, batch_tokens: int | None
) -> None:
    from tandem.launch.alone import unsupervised
    from tandem.launch.first import first_of_host
    from tandem.launch.foreign_mesh import meeting, meeting_environment, warn_of_network
    from tandem.observe.visible import visible_lines
    from tandem.runlog.layout import RunLayout
    from tandem.runlog.writer import NullLog
    from tandem.train.assemble import Options, train_rank

    speaks = os.environ["RANK"] == "0"
    with unsupervised(RunLayout(run).log, show=visible_lines), ExitStack() as lasting:
        if speaks and (warning := warn_of_network(os.environ, alone.key_folder, is_trusted=alone.is_trusted)):
            typer.echo(f"warning: {warning}", err=True)
        with first_of_host() as is_first, ExitStack() as stack:
            if not speaks:
                stack.enter_context(redirect_stderr(StringIO()))
            if is_first:
                make_ready(recipe, run, NullLog())
                lasting.enter_context(meeting(os.environ, alone.key_folder))
        os.environ.update(meeting_environment(os.environ, alone.key_folder))
        if speaks:
            typer.echo(f"Training in {near(run)}; look at it with tandem watch {near(run)}.")
            lasting.enter_context(reporting(recipe, run))
            lasting.enter_context(forwarding(run, alone.forward))
        train_rank(run, recipe, Options(device=device, fit=fit, batch_tokens=batch_tokens))
