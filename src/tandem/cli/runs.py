"""`tandem runs`: which runs there are and where they stand; `tandem runs prune`: room on the disk."""

# Imports wait until a command runs, so that --help answers at once.

import json
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from tandem.errors import TandemError

if TYPE_CHECKING:
    from rich.table import Table

    from tandem.checkpoint.listing import CheckpointInfo
    from tandem.checkpoint.prune import Plan
    from tandem.cli.bars import Bars
    from tandem.observe.listing import Best, Listed

__all__ = ["app"]

RUNS = Path("runs")
NANO = 1_000_000_000


class _Group(TyperGroup):
    """A command that may be followed by a folder or by one of its own commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """List where the first word is none of the commands."""
        is_asked = bool(args) and (args[0] in self.commands or args[0] == "--help")
        return super().parse_args(ctx, args if is_asked else ["list", *args])


app = typer.Typer(
    cls=_Group,
    help="List the runs of a folder with their state, progress, best scores and size; or free room.",
    rich_markup_mode=None,
)


@app.command("list")
def list_runs(
    folder: Annotated[Path, typer.Argument(help="A folder of runs, or a run.")] = RUNS,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List runs, the one last heard of first: state, progress, best scores, size on disk."""
    from rich.console import Console

    from tandem.cli.bars import Bars
    from tandem.observe.listing import find_runs
    from tandem.observe.visible import visible

    found: list[Listed] = []
    paths = find_runs(folder) if as_json else _found(folder)
    console = Console(file=sys.stderr, quiet=not sys.stderr.isatty())
    with Bars(console) as bars, bars.bar("Looking at runs", total=len(paths), unit="runs") as bar:
        for path in paths:
            found.append(_look(path))
            bar.advance(1)
    found.sort(key=lambda each: each.last_time_ns, reverse=True)
    if as_json:
        typer.echo(json.dumps([_as_json(each) for each in found], indent=1))
        return
    # What reads a pipe wants whole lines; a person's terminal is as wide as it is.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    console.print(_table(found))
    for each in found:
        if each.trouble:
            console.print(visible(f"{each.folder.name}: {each.trouble}"), markup=False, soft_wrap=True)
    if any(not each.is_all_read for each in found):
        console.print(
            "* best of the checkpoints kept and of the log's ends; tandem report reads all of a log"
        )


@app.command("prune")
def prune_runs(
    runs: Annotated[
        list[Path] | None, typer.Argument(help="Runs, or folders of runs; runs/ if not named.")
    ] = None,
    *,
    keep: Annotated[int, typer.Option(min=1, help="How many of the newest checkpoints stay.")] = 1,
    really: Annotated[
        bool, typer.Option("--really", help="Remove; without it, only say what would go.")
    ] = False,
) -> None:
    """Free room: remove checkpoints of runs that are not being trained, never the newest whole one nor the best."""
    from tandem.checkpoint.prune import plan_pruning
    from tandem.cli.bars import Bars
    from tandem.observe.numbers import megabytes
    from tandem.observe.visible import visible

    paths = list(dict.fromkeys(path for named in runs or [RUNS] for path in _found(named)))
    freed, troubles = 0, 0
    with Bars() as bars:
        for path in paths:
            try:
                plan = _prune(path, keep, bars) if really else plan_pruning(path, keep=keep)
                lines = _told(plan, is_gone=really)
            except (OSError, TandemError) as error:
                # Others can still be freed.
                lines = [f"{path}", f"  left alone: {error}"]
                troubles += 1
            else:
                freed += plan.bytes
                troubles += len(plan.stuck)
            for line in lines:
                typer.echo(visible(line))
    if really:
        typer.echo(f"{megabytes(freed)} are free now.")
    elif freed:
        typer.echo(f"{megabytes(freed)} would be free: add --really to remove them.")
    else:
        typer.echo("There is nothing to remove.")
    if troubles:
        raise TandemError(
            "Not all could be removed, as said above: check your rights there, and prune again."
        )


def _found(folder: Path) -> list[Path]:
    from tandem.observe.listing import find_runs

    found = find_runs(folder)
    if not found:
        raise TandemError(f"There is no run in {folder}: name the folder that runs are in.")
    return found


def _prune(path: Path, keep: int, bars: "Bars") -> "Plan":
    from tandem.checkpoint.prune import plan_pruning, prune

    plan = plan_pruning(path, keep=keep)
    if not plan.goes and not plan.left_over:
        return plan
    try:
        return prune(path, keep=keep, progress=bars)
    except TandemError as error:
        # Others can still be freed.
        return replace(plan, refusal=str(error), goes=(), left_over=(), left_over_bytes=0)


def _told(plan: "Plan", *, is_gone: bool) -> list[str]:
    from tandem.observe.listing import sizes_of
    from tandem.observe.numbers import megabytes

    lines = [f"{plan.run}"]
    if plan.refusal:
        return [*lines, f"  left alone: {plan.refusal}"]
    word = "removed" if is_gone else "would go"
    lines += [f"  {word:<9} {info.folder.name}  {megabytes(info.bytes)}{_scores(info)}" for info in plan.goes]
    lines += [f"  {word:<9} {folder.name}  (half-written or half-deleted)" for folder in plan.left_over]
    lines += [f"  not gone  {folder.name}  ({reason})" for folder, reason in plan.stuck.items()]
    lines += [
        f"  stays     {info.folder.name}  {megabytes(info.bytes)}{_scores(info)}" for info in plan.stays
    ]
    lines += [
        f"  damaged   {info.folder.name}  {megabytes(info.bytes)}  (not touched)" for info in plan.damaged
    ]
    with suppress(OSError):
        data = sizes_of(plan.run).data
        lines += [f"  also here: prepared data of {megabytes(data)}, which is not touched"] if data else []
    return lines


def _scores(info: "CheckpointInfo") -> str:
    marks = {"newest": info.is_newest, "best loss": info.is_best_loss, "best BLEU": info.is_best_bleu}
    held = ", ".join(name for name, is_so in marks.items() if is_so)
    return f"  ({held})" if held else ""


def _look(path: Path) -> "Listed":
    from tandem.observe.listing import damaged_run, list_run

    listed = list_run(path)
    try:
        return _with_kept(listed)
    except Exception as error:  # noqa: BLE001 - one damaged run must not take the list of all down
        return damaged_run(path, error)


def _with_kept(listed: "Listed") -> "Listed":
    """With the best of the checkpoints and of what they know, which the ends of a long log may not tell."""
    from tandem.checkpoint.listing import by_bleu, by_loss, list_checkpoints
    from tandem.runlog.layout import RunLayout

    infos = list_checkpoints(RunLayout(listed.folder).checkpoints)
    whole = [info for info in infos if info.is_complete]
    state = _read_state(whole[-1].folder) if whole else {}
    losses = [(info.scores.loss, info.step) for info in by_loss(whole)[:1]]
    scores = [(info.scores.bleu, info.step) for info in by_bleu(whole)[:1]]
    troubles = [listed.trouble, *(f"{info.folder.name}: {info.damage}" for info in infos if info.damage)]
    return replace(
        listed,
        best_loss=_best(listed.best_loss, *losses, (_score(state, "best_loss"), None), sign=-1),
        best_bleu=_best(listed.best_bleu, *scores, (_score(state, "best_bleu"), None), sign=1),
        is_all_read=listed.is_all_read or bool(state),
        trouble=" ".join(filter(None, troubles)),
    )


def _read_state(checkpoint: Path) -> dict[str, Any]:
    """Where the run stood at a checkpoint; nothing where that cannot be read."""
    from tandem.checkpoint.layout import STATE
    from tandem.files import read_json

    try:
        held = read_json(checkpoint / STATE)
    except (OSError, ValueError):
        return {}
    return held if isinstance(held, dict) else {}


def _score(state: dict[str, Any], name: str) -> float | None:
    """A score of a state; None where it has none, or something else in its place."""
    from tandem.checkpoint.listing import maybe_score

    with suppress(ValueError):
        return maybe_score(state.get(name))
    return None


def _best(logged: "Best | None", *others: tuple[float | None, int | None], sign: int) -> "Best | None":
    """The best of all; of equals the one whose step is known."""
    from tandem.observe.listing import Best

    kept = [Best(value=value, step=step) for value, step in others if value is not None]
    known = [*([logged] if logged else []), *kept]
    return max(known, key=lambda best: sign * best.value, default=None)


def _as_json(listed: "Listed") -> dict[str, Any]:
    from tandem.observe.report.strict import encodable

    return {
        "name": encodable(listed.folder.resolve().name),
        "folder": encodable(str(listed.folder)),
        "state": listed.state,
        "step": listed.step,
        "share": listed.share,
        "text": encodable(listed.text),
        "best_loss": None if listed.best_loss is None else asdict(listed.best_loss),
        "best_bleu": None if listed.best_bleu is None else asdict(listed.best_bleu),
        "is_best_of_all": listed.is_all_read,
        "last_time_ns": listed.last_time_ns or None,
        "bytes": {"whole": listed.sizes.whole, **asdict(listed.sizes)},
        "trouble": encodable(listed.trouble),
    }


def _table(found: "Sequence[Listed]") -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from tandem.observe.numbers import megabytes
    from tandem.observe.visible import visible

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("run", overflow="fold")
    table.add_column("state")
    table.add_column("progress")
    for name in ("best BLEU", "best loss", "size", "checkpoints", "last heard of"):
        table.add_column(name, justify="right")
    for each in found:
        table.add_row(
            Text(visible(each.folder.resolve().name)),
            each.state,
            Text(visible(_progress(each))),
            _shown(each.best_bleu, 2, each),
            _shown(each.best_loss, 4, each),
            megabytes(each.sizes.whole),
            megabytes(each.sizes.checkpoints),
            _ago(each.last_time_ns),
        )
    return table


def _progress(each: "Listed") -> str:
    from tandem.observe.watch.progress import share_text

    done = f"{share_text(each.share)} " if each.share is not None else ""
    return f"{done}{each.text}"


def _shown(best: "Best | None", digits: int, each: "Listed") -> str:
    if best is None:
        return "–"
    step = "" if best.step is None else f" @ {best.step:,}"
    return f"{best.value:.{digits}f}{step}{'' if each.is_all_read else '*'}"


def _ago(time_ns: int) -> str:
    from tandem.observe.numbers import duration

    return f"{duration(max(0.0, (time.time_ns() - time_ns) / NANO))} ago" if time_ns else "–"
