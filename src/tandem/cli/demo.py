"""`tandem demo`: the whole story on one machine, on text that the built-in grammar writes."""

# Imports wait until a command runs, so that --help answers at once.

import json
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tandem.cli.paths import near
from tandem.cli.training import How, refuse_other_recipe, train_here

if TYPE_CHECKING:
    from rich.console import Console

    from tandem.data.prepared import Prepared
    from tandem.translate.translator import Translator

__all__ = ["demo"]

RECIPE = Path(__file__).with_name("demo.yaml")
SHOWN_SENTENCES = 6


def demo(
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Values of the recipe to change: a.b=c …")
    ] = None,
    *,
    run: Annotated[Path, typer.Option(help="The run's folder.")] = Path("runs/demo"),
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0 means one a GPU, or one.")] = 2,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto: GPUs where there are any.")] = "cpu",
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a display.")] = False,
) -> None:
    """Prepare the built-in English–German text, train on it with two workers, and translate what it never saw."""
    from rich.console import Console

    from tandem.cli.bars import Bars
    from tandem.config import load_recipe
    from tandem.data.prepare import prepare
    from tandem.data.workers import cores
    from tandem.observe.data_card import render_card, write_html

    begun = time.monotonic()
    recipe = load_recipe(RECIPE, [f"data.folder={json.dumps(str(run / 'data'))}", *(overrides or ())]).recipe
    # Before its data is touched: a run that was begun with other values must be able to go on.
    refuse_other_recipe(recipe, run)
    console = Console(highlight=False)
    with Bars() as progress:
        prepared = prepare(recipe, workers=cores(), progress=progress)
    render_card(prepared.card(), console, examples=False)
    with suppress(OSError):  # its data may lie elsewhere; what cannot be written is said in the next line
        run.mkdir(parents=True, exist_ok=True)
    write_html(prepared.card(), run / "data.html")
    train_here(recipe, run, How(workers=workers, device=device, plain=plain))
    _translate_test(prepared, _open_best(run, sentences=False), console)
    _close(run, console, time.monotonic() - begun)
    if sys.stdin.isatty() and sys.stdout.isatty():
        _converse(prepared, _open_best(run, sentences=True), console)


def _open_best(run: Path, *, sentences: bool) -> "Translator":
    """The best checkpoint; without `sentences` it translates whole lines, as scores of evaluations are made."""
    from tandem.translate.open import open_model

    return open_model(run, engine="torch", device="cpu", sentences=sentences)


def _translate_test(prepared: "Prepared", translator: "Translator", console: "Console") -> None:
    """All of the test text for a score, and some of it to read."""
    from tandem.translate.score import score

    for name in prepared.held_out_names:
        if not name.startswith("test-"):
            continue
        text = prepared.held_out_text(name)
        wrote = [translation.text for translation in translator.translate(text.source)]
        scores = score(wrote, text.target)
        told = (
            f"{len(wrote)} test sentences, never trained on: BLEU {scores.bleu:.1f}, chrF {scores.chrf:.1f}"
        )
        console.print(f"\n[bold]{told}[/bold]")
        console.print(f"  [dim]{scores.bleu_signature}[/dim]")
        for place in range(0, len(wrote), max(1, len(wrote) // SHOWN_SENTENCES)):
            console.print(f"\n  source     {text.source[place]}", markup=False)
            console.print(f"  model      {wrote[place]}", markup=False)
            if wrote[place] != text.target[place]:
                console.print(f"  reference  {text.target[place]}", markup=False)


def _close(run: Path, console: "Console", seconds: float) -> None:
    command = "tandem" if shutil.which("tandem") else near(Path(sys.argv[0]))
    console.print(f"\n[bold green]Done in {seconds / 60:.1f} minutes.[/bold green] Look at it:")
    rows = [
        (f"{command} report {near(run)}", "eleven questions about the run, answered from what was measured"),
        (near(run / "report" / "report.html"), "the same with figures: open it in a browser"),
        (f"{command} checkpoints {near(run)}", "what was kept, and how good it is"),
        (f"{command} watch {near(run)}", "the run again, as it was shown"),
        (f"tensorboard --logdir {near(run / 'tensorboard')}", "its curves"),
        (near(run / "data.html"), "the data card as a page: open it in a browser"),
        (f"{command} translate {near(run)}", "type English, read German"),
        (f"{command} demo --run runs/more data.train.0.builtin.pairs=100000", "more text"),
        (f"{command} config keys", "all that a recipe for your own text can say"),
    ]
    width = max(len(left) for left, _ in rows)
    for left, right in rows:
        console.print(f"  {left:<{width}}  {right}", markup=False, soft_wrap=True)


def _converse(prepared: "Prepared", translator: "Translator", console: "Console") -> None:
    from tandem.cli.converse import converse

    examples = prepared.held_out_text("valid").source[:3]
    console.print(
        "\n[bold]Now you:[/bold] type an English sentence; Ctrl-D ends. It knows the words of such ones:"
    )
    for example in examples:
        console.print(f"  {example}", markup=False)
    converse(translator)
