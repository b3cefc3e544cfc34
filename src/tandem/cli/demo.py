"""`tandem demo`: the whole story on one machine, on text that the built-in grammar writes."""

# Imports wait until a command runs, so that --help answers at once.

import json
import platform
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tandem import __version__
from tandem.cli.paths import near
from tandem.errors import TandemError

if TYPE_CHECKING:
    from rich.console import Console
    from torch import Tensor

    from tandem.config import Recipe
    from tandem.data.batches.batch import Batch
    from tandem.data.prepared import Prepared
    from tandem.runlog.writer import RunLog

__all__ = ["demo"]

RECIPE = Path(__file__).with_name("demo.yaml")
SHOWN_RANKS = 2


def demo(
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Values of the recipe to change: a.b=c …")
    ] = None,
    *,
    run: Annotated[Path, typer.Option(help="The run's folder.")] = Path("runs/demo"),
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0 means one for each core.")] = 0,
) -> None:
    """Prepare the built-in English–German text, show its data card, and look at real batches for two ranks."""
    from rich.console import Console

    from tandem.cli.bars import Bars
    from tandem.config import load_recipe
    from tandem.data.prepare import prepare
    from tandem.data.workers import cores
    from tandem.observe.data_card import render_card, write_html
    from tandem.runlog.event import RunFinished
    from tandem.runlog.writer import open_rank_log

    begun = time.monotonic()
    recipe = load_recipe(RECIPE, [f"data.folder={json.dumps(str(run / 'data'))}", *(overrides or ())]).recipe
    console = Console(highlight=False)
    log = open_rank_log(run, 0)
    try:
        _log_start(log, recipe)
        with Bars() as progress:
            prepared = prepare(recipe, workers=workers or cores(), progress=progress, log=log)
        card = prepared.card()
        render_card(card, console, examples=False)
        _show_batches(prepared, console, log)
        page = run / "data.html"
        write_html(card, page)
        log.log(RunFinished(reason="completed"))
    except TandemError as error:
        log.log(RunFinished(reason=f"failed: {error}"))
        raise
    finally:
        log.close()
    _close(console, prepared, page, time.monotonic() - begun)


def _log_start(log: "RunLog", recipe: "Recipe") -> None:
    from tandem.artefact import fingerprint
    from tandem.runlog.event import RunStarted

    log.log(
        RunStarted(
            run=recipe.name,
            tandem=__version__,
            command=tuple(sys.argv),
            recipe=fingerprint(recipe.model_dump(mode="json")),
            world_size=1,
            host=platform.node(),
            python=platform.python_version(),
            torch="",
        )
    )


def _show_batches(prepared: "Prepared", console: "Console", log: "RunLog") -> None:
    """The first update as two ranks would get it."""
    from rich.table import Table

    from tandem.data.batches.plan import Cursor
    from tandem.data.batches.shape import BatchShape
    from tandem.data.batches.stream import BatchStream
    from tandem.data.card import CAPACITY_TOKENS
    from tandem.runlog.event import BatchesPlanned

    plan = prepared.plan()
    batching = prepared.card().batching
    log.log(
        BatchesPlanned(
            pairs=len(plan.shards),
            updates_per_epoch=batching.updates_per_epoch,
            padding_share=batching.padded_share,
        )
    )
    shape = BatchShape(layout="padded", source_tokens=CAPACITY_TOKENS, target_tokens=CAPACITY_TOKENS)
    table = Table(title="\nThe first update, dealt to two ranks", title_justify="left", title_style="bold")
    for heading in ("rank", "batch", "pairs", "source shape", "target shape", "target tokens", "padding"):
        table.add_column(heading, justify="right")
    for rank in range(SHOWN_RANKS):
        with BatchStream(plan, start=Cursor(), shape=shape, rank=rank, ranks=SHOWN_RANKS) as stream:
            update = next(stream)
        for number, batch in enumerate(update.batches):
            table.add_row(str(rank), str(number), *_describe(batch, pad=plan.shards.special.pad))
        if rank == 0:
            first = update.batches[0]
    console.print(table)
    _show_pairs(prepared, first.source, first.labels, console)


def _describe(batch: "Batch[Tensor]", *, pad: int) -> list[str]:
    places = batch.source.numel() + batch.labels.numel()
    filled = int((batch.source != pad).sum()) + batch.target_tokens
    shapes = [" × ".join(map(str, side.shape)) for side in (batch.source, batch.labels)]
    return [str(batch.pairs), *shapes, f"{batch.target_tokens:,}", f"{1 - filled / max(1, places):.1%}"]


def _show_pairs(prepared: "Prepared", source: "Tensor", labels: "Tensor", console: "Console") -> None:
    subword = prepared.subword()
    console.print("\n[bold]Its first pairs, as ids and as text[/bold]")
    for row in range(min(3, len(source))):
        for model, side in ((subword.source, source), (subword.target, labels)):
            ids = side[row].tolist()
            shown = " ".join(map(str, ids[:12])) + (" …" if len(ids) > 12 else "")
            console.print(f"  {model.decode(ids)}", markup=False)
            console.print(f"    [dim]{shown}[/dim]")


def _close(console: "Console", prepared: "Prepared", page: Path, seconds: float) -> None:
    console.print(f"\n[bold green]Done in {seconds:.0f} s.[/bold green] Made:")
    _print_rows(
        console,
        [
            (near(prepared.clean_folder), "the clean pairs as text, and what was dropped"),
            (near(prepared.subword_folder), "the subword model"),
            (near(prepared.train_folder), "the training pairs encoded, for any number of ranks"),
            (near(page), "the data card as a page: open it in a browser"),
            (near(page.parent / "log"), "the run log: facts as JSON lines"),
        ],
    )
    command = "tandem" if shutil.which("tandem") else near(Path(sys.argv[0]))
    console.print("\nTry next:")
    _print_rows(
        console,
        [
            (f"{command} data inspect {near(prepared.folder)}", "what was dropped, and why"),
            (f"{command} demo data.train.0.builtin.pairs=200000", "more text"),
            (f"{command} config keys", "all that a recipe for your own text can say"),
            (f"{command} data list", "public corpora to fetch"),
        ],
    )


def _print_rows(console: "Console", rows: list[tuple[str, str]]) -> None:
    width = max(len(left) for left, _ in rows)
    for left, right in rows:
        console.print(f"  {left:<{width}}  {right}", markup=False, soft_wrap=True)
