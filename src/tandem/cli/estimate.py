"""`tandem estimate`: what a recipe takes, and what fits into the memory of which GPU, before anything is tried."""

# Imports wait until a command runs, so that --help answers at once.

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from tandem.config import Recipe
    from tandem.estimate.memory import RankMemory

__all__ = ["estimate"]

_GIGABYTES = (16, 24, 40, 80, 141)
_GB = 10**9


def estimate(
    recipe: Annotated[Path, typer.Argument(help="The recipe, a YAML file.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="Values to change: a.b=c …")] = None,
) -> None:
    """Say what training a recipe takes: parameters, operations, memory, and the largest batch that GPUs hold."""
    from rich.console import Console

    from tandem.config import load_recipe
    from tandem.estimate.memory import CONTEXT_BYTES, SPARE, RankMemory

    loaded = load_recipe(recipe, overrides or ()).recipe
    memory = RankMemory.of(loaded)
    # What reads a pipe wants whole lines; a person's terminal is as wide as it is.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    for line in (*_facts(loaded), *_needs(loaded, memory)):
        console.print(line, markup=False, soft_wrap=True)
    console.print(_table(loaded, memory))
    for line in _cures(loaded, memory):
        console.print(line, markup=False, soft_wrap=True)
    console.print(
        f"GB are 10^9 bytes. {100 * SPARE:.0f} % of the memory and {CONTEXT_BYTES / _GB:.1f} GB for the driver are "
        "left free. tandem train --fit finds out by trying.",
        markup=False,
        soft_wrap=True,
    )


def _facts(recipe: "Recipe") -> Iterator[str]:
    from tandem.estimate.flops import WMT_LENGTHS, training_flops
    from tandem.estimate.memory import checkpoint_bytes
    from tandem.estimate.parameters import count_parameters, vocabulary_of
    from tandem.observe.numbers import count, megabytes

    model, vocabulary = recipe.model, vocabulary_of(recipe)
    parameters = count_parameters(model, source_vocabulary=vocabulary, target_vocabulary=vocabulary)
    flops = training_flops(model, vocabulary=vocabulary, lengths=WMT_LENGTHS)
    yield f"parameters      {count(parameters)}, with {count(vocabulary)} pieces"
    yield (
        f"training        {flops / 1e6:,.1f} MFLOP a target token, if sentences have {WMT_LENGTHS.source:g} source and "
        f"{WMT_LENGTHS.target:g} target tokens on average"
    )
    yield f"checkpoint      {megabytes(checkpoint_bytes(parameters, averaged=bool(recipe.optim.ema_decay)))}"


def _needs(recipe: "Recipe", memory: "RankMemory") -> Iterator[str]:
    from tandem.estimate.memory import way_for

    how = {"fused": "bf16 or fp16, fused kernels", "half": "bf16 or fp16", "full": "fp32 or tf32"}
    average = ", running average" if recipe.optim.ema_decay else ""
    yield f"on every GPU    {memory.state / _GB:,.2f} GB: weights, gradients, moments{average}"
    yield (
        f"in every pass   {memory.kept.source / 1e3:,.1f} kB a source token and {memory.kept.target / 1e3:,.1f} kB a "
        f"target token ({how[way_for(recipe)]})"
    )


def _table(recipe: "Recipe", memory: "RankMemory") -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from tandem.estimate.memory import MOST_TOKENS
    from tandem.observe.numbers import count

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("GPU memory", justify="right", no_wrap=True)
    table.add_column("largest micro-batch, tokens a side", justify="right")
    wanted = recipe.batch.target_tokens
    table.add_column(f"micro-batches of an update of {count(wanted)} target tokens on 1 GPU", justify="right")
    for gigabytes in _GIGABYTES:
        tokens = memory.largest_on(gigabytes * _GB)
        if tokens < _least(recipe):
            cells = "does not fit", "–"
        else:
            most = ", the most" if tokens == MOST_TOKENS else ""
            cells = count(tokens) + most, count(-(-wanted // tokens))
        table.add_row(f"{gigabytes} GB", *cells)
    return table


def _cures(recipe: "Recipe", memory: "RankMemory") -> Iterator[str]:
    """A sentence for each GPU that is too small."""
    from tandem.estimate.memory import RankMemory

    least = _least(recipe)
    needed = memory.pass_bytes(source_tokens=least, target_tokens=least)
    optim = recipe.optim.model_copy(update={"ema_decay": 0.0})
    lighter = RankMemory.of(recipe.model_copy(update={"optim": optim}))
    for gigabytes in _GIGABYTES:
        gpu = gigabytes * _GB
        if memory.largest_on(gpu) >= least:
            continue
        cures = ["take a smaller model"]
        cures += ["do without optim.ema_decay"] if lighter.largest_on(gpu) >= least else []
        room = memory.room_bytes(gpu)
        why = f"weights, gradients and moments take {memory.state / _GB:,.2f} GB"
        if room > 0:
            cures.append("make subword.max_pieces smaller")
            why += (
                f" and leave {room / _GB:,.2f} GB, but sentences of {recipe.subword.max_pieces} pieces need "
                f"{needed / _GB:,.2f} GB"
            )
        yield f"{gigabytes} GB: {why}: {', or '.join(cures)}."


def _least(recipe: "Recipe") -> int:
    """Tokens of the longest sentence: it always has to fit."""
    return recipe.subword.max_pieces + 1
