"""Whose fault a bad link is: a host's, where all that is bad has to do with it, else a pair's."""

from collections.abc import Callable, Collection, Iterable

__all__ = ["blame_directions", "blame_links"]

Pair = tuple[str, str]
"""From one host to another."""


def blame_links(bad: Collection[Pair], measured: Collection[Pair]) -> dict[str, list[Pair]]:
    """By the host whose link explains them, or by "a → b": the bad ones of the measured pairs.

    A host is named if it was measured with two others or more and is bad with each, unless that holds for all hosts.
    """
    peers = {name: _peers(name, measured) for name in _names(measured)}
    named = [name for name, met in peers.items() if len(met) > 1 and _peers(name, bad) == met]
    if len(named) == len(peers):
        named = []
    return _sorted_out(bad, lambda pair: next((name for name in named if name in pair), ""))


def blame_directions(bad: Collection[Pair], tried: Collection[Pair]) -> dict[str, list[Pair]]:
    """The same for connections: by "→ b" where nobody reaches b, by "a →" where a reaches nobody, or by "a → b"."""
    names = _names(tried)
    unreached = [name for name in names if _all_bad([pair for pair in tried if pair[1] == name], bad)]
    unreaching = [name for name in names if _all_bad([pair for pair in tried if pair[0] == name], bad)]

    def find(pair: Pair) -> str:
        if pair[1] in unreached:
            return f"→ {pair[1]}"
        return f"{pair[0]} →" if pair[0] in unreaching else ""

    return _sorted_out(bad, find)


def _all_bad(pairs: Collection[Pair], bad: Collection[Pair]) -> bool:
    return len(pairs) > 1 and set(pairs) <= set(bad)


def _names(pairs: Iterable[Pair]) -> list[str]:
    return list(dict.fromkeys(name for pair in pairs for name in pair))


def _peers(name: str, pairs: Iterable[Pair]) -> set[str]:
    return {other for pair in pairs if name in pair for other in pair if other != name}


def _sorted_out(bad: Iterable[Pair], find: Callable[[Pair], str]) -> dict[str, list[Pair]]:
    found: dict[str, list[Pair]] = {}
    for pair in bad:
        found.setdefault(find(pair) or " → ".join(pair), []).append(pair)
    return found
