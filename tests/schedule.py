"""Which test process runs what: a module's tests stay together, and what takes longest begins first."""

from collections.abc import MutableSequence

import pytest
from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]

__all__ = ["ByModule", "put_long_ones_first"]

# Begun last, one of them would leave every other process idle at the end.
LONG = (
    "tests/hosts/test_train.py",
    "tests/hosts/",
    "tests/system/",
    "tests/distributed/",
    "tests/browser/",
    "tests/unit/benchmarks/",
)


class ByModule(LoadGroupScheduling):  # type: ignore[misc]
    """Groups where they are marked, and otherwise modules: what a module's tests share is made and imported once."""

    def _split_scope(self, nodeid: str) -> str:
        return str(super()._split_scope(nodeid)).partition("::")[0]


def put_long_ones_first(items: MutableSequence[pytest.Item]) -> None:
    """All others stay in their order, after them."""
    order = {folder: place for place, folder in enumerate(LONG)}

    def place(item: pytest.Item) -> int:
        return next((order[folder] for folder in LONG if item.nodeid.startswith(folder)), len(LONG))

    items[:] = sorted(items, key=place)
