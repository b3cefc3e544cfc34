"""`tandem doctor`: is this machine, or this cluster, fit to train on, and what is not?"""

# Imports wait until a command runs, so that --help answers at once.

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tandem.cli.hosts import Dir, Hosts, HostsOptions, Network, Nic, Port, Python, SshConfig, reach

if TYPE_CHECKING:
    from rich.console import Console

    from tandem.config import Recipe
    from tandem.launch.doctor.examination import Examination
    from tandem.launch.doctor.line import Line

__all__ = ["doctor"]

_STYLES = {"fine": "green", "poor": "yellow", "broken": "bold red"}


def doctor(
    recipe: Annotated[
        Path | None, typer.Argument(help="The recipe to train; the base model if not given.")
    ] = None,
    overrides: Annotated[list[str] | None, typer.Argument(help="Values to change: a.b=c …")] = None,
    *,
    hosts: Hosts = None,
    ssh_config: SshConfig = None,
    python: Python = None,
    folder: Dir = "",
    port: Port = 0,
    network: Network = "any",
    nic: Nic = "",
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a table.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="All lines and measurements as JSON.")] = False,
) -> None:
    """Examine hosts and the links between them before training; exit code 1 if anything is broken.

    Each line: what was found, whether it is fine, poor or broken, and the cure.
    """
    from tandem.cli.bars import Bars
    from tandem.config import load_recipe
    from tandem.launch.doctor.judge import judge
    from tandem.launch.doctor.look import look, look_here

    loaded: Recipe | None = None if recipe is None else load_recipe(recipe, overrides or ()).recipe
    with Bars() as progress:
        if hosts is None:
            with progress.bar("examining this machine"):
                examination = look_here(folder=Path(folder), recipe=loaded)
        else:
            named = HostsOptions(hosts=hosts, ssh_config=ssh_config, python=python, network=network)
            examination = look(
                *reach(named),
                folder=folder or str(Path.cwd()),
                recipe=loaded,
                port=port,
                nic=nic,
                trusted=network == "trusted",
                progress=progress,
            )
    lines = judge(examination)
    _show(lines, examination, plain=plain, as_json=as_json)
    if any(line.verdict == "broken" for line in lines):
        raise typer.Exit(1)


def _show(lines: Sequence["Line"], examination: "Examination", *, plain: bool, as_json: bool) -> None:
    from rich.console import Console

    if as_json:
        typer.echo(json.dumps(_to_json(lines, examination), indent=1, ensure_ascii=False))
        return
    lines = [_visible(line) for line in lines]
    console = Console(highlight=False)
    if plain:
        for line in lines:
            cure = f" – {line.cure}" if line.cure else ""
            typer.echo(f"{line.verdict:<6}  {line.host}: {line.what}: {line.value}{cure}")
    else:
        _show_table(console, lines)
    _show_sum(console, lines, plain=plain)


def _visible(line: "Line") -> "Line":
    """The same, without what a host could have written to steer the terminal."""
    from dataclasses import replace

    from tandem.observe.visible import visible

    return replace(line, host=visible(line.host), value=visible(line.value), cure=visible(line.cure))


def _show_table(console: "Console", lines: Sequence["Line"]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("host", "what", "found", ""):
        table.add_column(name, no_wrap=name == "")
    before = ""
    for line in lines:
        host = "" if line.host == before else escape(line.host)
        before = line.host
        verdict = f"[{_STYLES[line.verdict]}]{line.verdict}[/]"
        table.add_row(host, line.what, escape(line.value), verdict)
    console.print(table)


def _show_sum(console: "Console", lines: Sequence["Line"], *, plain: bool) -> None:
    from rich.markup import escape

    bad = [line for line in lines if line.verdict != "fine"]
    if not plain:
        for line in bad:
            verdict = f"[{_STYLES[line.verdict]}]{line.verdict}[/]"
            console.print(f"{verdict} {escape(f'{line.host}, {line.what}: {line.cure}')}")
    count = {verdict: sum(line.verdict == verdict for line in lines) for verdict in _STYLES}
    console.print(", ".join(f"{number} {verdict}" for verdict, number in count.items()) + ".", markup=False)


def _to_json(lines: Sequence["Line"], examination: "Examination") -> Any:
    from dataclasses import asdict

    from tandem.launch.doctor.steps import predict_steps

    predicted = predict_steps(examination)
    steps = None if predicted is None else asdict(predicted)
    return _known({"lines": [asdict(line) for line in lines], **asdict(examination), "steps": steps})


def _known(held: Any) -> Any:
    """The same with null for what is not a number, which JSON does not have."""
    if isinstance(held, dict):
        return {key: _known(value) for key, value in held.items()}
    if isinstance(held, list | tuple):
        return [_known(value) for value in held]
    return None if isinstance(held, float) and not math.isfinite(held) else held
