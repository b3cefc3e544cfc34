"""Which hosts see the same run folder, and which rank writes into each."""

import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from tandem.parallel.world import World

__all__ = ["find_writers"]

_BEGIN = ".seen-"


def find_writers(run: Path, world: World) -> tuple[int, ...]:
    """The ranks that write checkpoints: of those that see one folder the lowest, so that each disk gets them once."""
    if world.is_one_host:
        return (0,)
    is_first = world.local_rank == 0
    # Never looked for before: a shared disk's client may remember for a while that a name was not there.
    token = _leave_token(run) if is_first else ""
    held = cast(list[dict[str, Any]], world.gather({"first": is_first, "token": token}))
    tokens = [str(each["token"]) for each in held]
    seen = {rank for rank, each in enumerate(tokens) if is_first and each and (run / each).exists()}
    links = cast(list[list[int]], world.gather(sorted(seen)))
    if is_first:
        _clear(run)
    return tuple(
        rank
        for rank, each in enumerate(held)
        if each["first"] and not any(lower in links[rank] or rank in links[lower] for lower in range(rank))
    )


def _leave_token(run: Path) -> str:
    """A new file in the folder, by its name; empty where the disk takes none."""
    token = f"{_BEGIN}{secrets.token_hex(8)}"
    try:
        run.mkdir(parents=True, exist_ok=True)
        (run / token).touch(exist_ok=False)
    except OSError:
        return ""
    return token


def _clear(run: Path) -> None:
    """Remove the tokens, of other hosts and of killed runs too: everybody has looked."""
    with suppress(OSError):
        for token in run.glob(f"{_BEGIN}*"):
            token.unlink(missing_ok=True)
