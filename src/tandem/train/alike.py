"""Whether all ranks have the same code, recipe and data, asked before anything is learnt; the answer names hosts."""

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

import torch

from tandem import __version__
from tandem.artefact import JsonValue, fingerprint
from tandem.config import Recipe
from tandem.config.document import dotted
from tandem.config.load import leaves
from tandem.errors import TandemError
from tandem.parallel.world import World

__all__ = ["Files", "check_alike", "name_host"]

Files: TypeAlias = Mapping[str, tuple[str, str]]
"""By what they are to the person: a fingerprint, and where they lie on this host."""

_SHOWN = 3
_SHOWN_MARK = 8


def check_alike(world: World, recipe: Recipe, files: Files, *, failure: str = "") -> tuple[str, ...]:
    """The host of each rank, if all have the same; else TandemError on every rank, naming two that differ.

    A rank that failed to open its files says so here, as the others would wait for it otherwise.
    """
    values = _values(recipe)
    told: Mapping[str, JsonValue] = {
        "host": platform.node(),
        "failure": failure,
        "versions": {"Tandem": __version__, "PyTorch": str(torch.__version__)},
        "recipe": fingerprint(values),
        "files": {what: list(held) for what, held in files.items()},
        "device": _device(world),
    }
    held = cast(list[dict[str, Any]], world.gather(told))
    hosts = tuple(str(each["host"]) for each in held)
    for rank, each in enumerate(held):
        if each["failure"]:
            raise TandemError(name_host(hosts, rank, each["failure"]))
    for rank in range(1, world.size):
        _check_versions(held, rank, names=_tell_apart(hosts, rank))
    if others := [rank for rank, each in enumerate(held) if each["recipe"] != held[0]["recipe"]]:
        _refuse_recipe(cast(list[dict[str, str]], world.gather(values)), others[0], hosts)
    for rank in range(1, world.size):
        _check_files(held, rank, names=_tell_apart(hosts, rank))
        if recipe.optim.algorithm == "muon":
            _check_device(held, rank, names=_tell_apart(hosts, rank))
    return hosts


def name_host(hosts: Sequence[str], rank: int, sentence: str) -> str:
    """The sentence with the rank's host before it, where there are several hosts."""
    return f"{hosts[rank]}: {sentence}" if len(set(hosts)) > 1 else sentence


def _values(recipe: Recipe) -> dict[str, str]:
    """Every value that must be the same; where things lie may differ from host to host."""
    return {dotted(loc): str(value) for loc, value in leaves(recipe) if not isinstance(value, Path)}


def _tell_apart(hosts: Sequence[str], rank: int) -> tuple[str, str]:
    """What to call rank 0 and this one."""
    if hosts[rank] != hosts[0]:
        return hosts[0], hosts[rank]
    return f"rank 0 of {hosts[0]}", f"rank {rank} of {hosts[rank]}"


def _check_versions(held: Sequence[Mapping[str, Any]], rank: int, *, names: tuple[str, str]) -> None:
    for what, version in held[0]["versions"].items():
        other = held[rank]["versions"].get(what)
        if other != version:
            raise TandemError(
                f"{names[0]} has {what} {version}, but {names[1]} has {other}: install the same version on all hosts."
            )


def _device(world: World) -> str:
    """What rounds matrix products the same way, as far as can be told."""
    if world.device.type == "cuda":
        return torch.cuda.get_device_name(world.device)
    return f"a CPU ({torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} threads)"


def _check_device(held: Sequence[Mapping[str, Any]], rank: int, *, names: tuple[str, str]) -> None:
    # Adam's steps are made number by number, and come out alike on all devices; products of matrices do not.
    if held[rank]["device"] != held[0]["device"]:
        raise TandemError(
            f"{names[0]} computes on {held[0]['device']}, but {names[1]} on {held[rank]['device']}: with "
            "optim.algorithm muon their weights would drift apart; make it adamw."
        )


def _refuse_recipe(values: Sequence[Mapping[str, str]], rank: int, hosts: Sequence[str]) -> None:
    first, other = values[0], values[rank]
    changed = [key for key in {**first, **other} if first.get(key) != other.get(key)]
    shown = ", ".join(changed[:_SHOWN]) + (" …" if len(changed) > _SHOWN else "")
    names = _tell_apart(hosts, rank)
    raise TandemError(
        f"{names[0]} and {names[1]} do not have the same recipe (different: {shown}): "
        "start all of them with the same recipe and overrides."
    )


def _check_files(held: Sequence[Mapping[str, Any]], rank: int, *, names: tuple[str, str]) -> None:
    for what, (mark, place) in held[0]["files"].items():
        other, elsewhere = held[rank]["files"][what]
        if other != mark:
            raise TandemError(
                f"{names[0]} and {names[1]} do not have the same {what}: {place} on {names[0]} is "
                f"{mark[:_SHOWN_MARK]}…, {elsewhere} on {names[1]} is {other[:_SHOWN_MARK]}…; copy one of them to the "
                "other host, as tandem data push does."
            )
