"""`tandem data`: public corpora, preparation, a look at what was prepared, and copies on other hosts."""

# Imports wait until a command runs, so that --help answers at once.

import json
from pathlib import Path
from typing import Annotated

import typer

from tandem.cli.data_get import get_corpus, list_corpora
from tandem.cli.data_push import push_data
from tandem.cli.paths import near
from tandem.errors import TandemError

__all__ = ["app"]

app = typer.Typer(help="Fetch text, prepare it for training, and look at it.", no_args_is_help=True)
app.command("list")(list_corpora)
app.command("get")(get_corpus)
app.command("push")(push_data)

Overrides = Annotated[list[str] | None, typer.Argument(help="Values to change: a.b=c …")]


@app.command()
def prepare(
    recipe: Annotated[Path, typer.Argument(help="The recipe, a YAML file.")],
    overrides: Overrides = None,
    *,
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0 means one for each core.")] = 0,
) -> None:
    """Clean, segment and encode the recipe's text; goes on where it was interrupted, and redoes only what changed."""
    from rich.console import Console

    from tandem.cli.bars import Bars
    from tandem.config import load_recipe
    from tandem.data.prepare import prepare as prepare_data
    from tandem.data.workers import cores
    from tandem.observe.data_card import headline
    from tandem.observe.visible import visible

    loaded = load_recipe(recipe, overrides or ())
    with Bars() as progress:
        prepared = prepare_data(loaded.recipe, workers=workers or cores(), progress=progress)
    console = Console(highlight=False, soft_wrap=True)
    # Words go to the next line of a terminal whole; a file has no width.
    console.print(visible(headline(prepared.card())), markup=False, soft_wrap=not console.is_terminal)
    console.print(f"Prepared data: {near(prepared.folder)}", markup=False)
    console.print(f"Look at it:    tandem data inspect {near(prepared.folder)}", markup=False)


@app.command()
def inspect(
    where: Annotated[Path, typer.Argument(help="A folder of prepared data, or the recipe it was made from.")],
    overrides: Overrides = None,
    *,
    html: Annotated[Path | None, typer.Option(help="Also write the card as one HTML file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the card as JSON.")] = False,
    examples: Annotated[bool, typer.Option(help="Show examples of dropped pairs.")] = True,
) -> None:
    """Show the data card: how big the text is, what was dropped and why, lengths, padding, overlap, examples."""
    from rich.console import Console

    from tandem.config import load_recipe
    from tandem.observe.data_card import render_card, write_html
    from tandem.runlog.card import read_card

    if where.is_dir() and overrides:
        raise TandemError(f"{where} is a folder, which has no values to change: name the recipe instead.")
    if not where.exists():
        raise TandemError(f"There is no folder or recipe {where}: check the path.")
    folder = where if where.is_dir() else load_recipe(where, overrides or ()).recipe.prepared_folder
    card = read_card(folder / "card.json")
    if as_json:
        typer.echo(json.dumps(card.to_json(), indent=1, ensure_ascii=False))
    else:
        render_card(card, Console(highlight=False), examples=examples)
    if html is not None:
        write_html(card, html)
        typer.echo(f"wrote {html}", err=as_json)
