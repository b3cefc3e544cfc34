"""`tandem config`: the recipe as it is understood, its keys, and its schema for editors."""

# Imports wait until a command runs, so that --help answers at once.

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tandem.config import LoadedRecipe

__all__ = ["app"]

app = typer.Typer(
    help="Look at recipes: values and where they came from, keys, schema.", no_args_is_help=True
)


@app.command()
def show(
    recipe: Annotated[Path, typer.Argument(help="The recipe, a YAML file.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="Values to change: a.b=c …")] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print recipe and origins as JSON.")] = False,
) -> None:
    """Print the resolved recipe, each value with where it came from."""
    from tandem.config import load_recipe

    loaded = load_recipe(recipe, overrides or ())
    if as_json:
        values = loaded.recipe.model_dump(mode="json")
        typer.echo(
            json.dumps({"recipe": values, "origins": dict(loaded.origins)}, indent=2, ensure_ascii=False)
        )
    else:
        _print_values(loaded)


@app.command()
def keys(
    word: Annotated[str, typer.Argument(help="Only keys with this in their name or meaning.")] = "",
) -> None:
    """Print every key of a recipe with its default and what it means."""
    from rich.console import Console
    from rich.text import Text

    from tandem.config import recipe_keys

    console = Console(highlight=False)
    for key in recipe_keys():
        if word.lower() in f"{key.name} {key.sentence}".lower():
            console.print(Text.assemble((key.name, "bold"), (f"  {key.default}", "cyan")), soft_wrap=True)
            console.print(Text(f"    {key.sentence}"), soft_wrap=True)


@app.command()
def schema(
    out: Annotated[Path | None, typer.Option("--out", help="Write to this file instead.")] = None,
) -> None:
    """Print the JSON schema of a recipe; editors complete and check keys with it."""
    from tandem.artefact import write_atomic
    from tandem.config import recipe_schema

    text = json.dumps(recipe_schema(), indent=2, ensure_ascii=False)
    if out is None:
        typer.echo(text)
    else:
        write_atomic(out, f"{text}\n".encode())


def _print_values(loaded: "LoadedRecipe") -> None:
    from rich.console import Console
    from rich.text import Text

    from tandem.observe.visible import visible

    rows = [tuple(map(visible, row)) for row in loaded.rows()]
    key_width, value_width = (max(len(row[column]) for row in rows) for column in (0, 1))
    console = Console(highlight=False)
    for key, value, origin in rows:
        style = "dim" if origin == "default" else "bold"
        line = Text.assemble(
            f"{key:{key_width}}  ", (f"{value:{value_width}}", style), (f"  {origin}", "dim")
        )
        console.print(line, soft_wrap=True)
