"""What a checkpoint says of residuals, and what lies in their files, is checked before it is used."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tandem.checkpoint.residuals import Owner, ResidualStore
from tandem.runlog.writer import NullLog
from tandem.train.run_exchange import _expected, _maybe_load

OWNER = Owner(host=0, hosts=2, share=0, shares=1)


@pytest.mark.parametrize(
    "told",
    [None, [], 7, "x", {"owners": [10**9, 1]}, {"owners": [3, 10**9]}, {"owners": [2]}, {"owners": [2, 1, 1]}]
    + [{"owners": owners} for owners in (["a", "b"], 3, [2.5, 1], [True, True], [-2, -2], [0, 4], None)],
)
def test_owners_that_no_run_can_have_are_none(told: Any) -> None:
    assert _expected({"exchange": told}) == []


def test_owners_are_all_shares_of_all_hosts() -> None:
    assert [owner.name for owner in _expected({"exchange": {"owners": [2, 2]}})] == [
        f"host-{host}-of-2-share-{share}-of-2" for host in range(2) for share in range(2)
    ]


@pytest.mark.parametrize(
    ("tensors", "fits"),
    [
        ({"share": torch.ones(64)}, True),
        ({"share": torch.ones(1)}, False),
        ({"share": torch.ones(64, dtype=torch.float64)}, False),
        ({"share": torch.full((64,), float("nan"))}, False),
        ({"share": torch.full((64,), float("inf"))}, False),
        ({"other": torch.ones(64)}, False),
        ({"share": torch.ones(64), "part": torch.ones(64)}, False),
    ],
)
def test_residuals_that_the_exchange_cannot_have_left_count_as_lost(
    tmp_path: Path, tensors: dict[str, Tensor], fits: bool
) -> None:
    store = ResidualStore(tmp_path, owner=OWNER, facts={}, log=NullLog())
    store.save(20, tensors)
    assert store.wait() == ""
    assert (_maybe_load(store, 20, OWNER, {"share": 64}) is not None) is fits
    store.close()
