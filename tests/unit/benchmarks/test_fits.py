"""Smaller GPUs are imitated in order, what was found is shown, and without a GPU there is one sentence."""

import sys
from typing import Any

import pytest
import torch
from benchmarks.fits import build_table, choose_limits, main
from rich.console import Console


def shown(*cases: dict[str, Any]) -> list[list[str]]:
    console = Console(width=160)
    with console.capture() as captured:
        console.print(build_table(cases))
    return [line.replace("│", " ").split() for line in captured.get().splitlines()]


@pytest.mark.parametrize(
    ("total", "limits"),
    [
        (150 * 10**9, [16 * 10**9, 24 * 10**9, 40 * 10**9, 80 * 10**9, 150 * 10**9]),
        (24 * 10**9, [16 * 10**9, 24 * 10**9]),
        (8 * 10**9, [8 * 10**9]),
    ],
)
def test_gpus_that_are_smaller_are_imitated_and_the_whole_one_comes_last(
    total: int, limits: list[int]
) -> None:
    assert choose_limits(total) == limits


def test_the_table_shows_estimate_beside_what_was_found() -> None:
    found = {"estimate_fits": False, "found_tokens": 60_160, "counted_of_peak": 0.978}
    lines = shown(
        {"size": "base", "gpu_bytes": 16 * 10**9, "estimated_tokens": 61_056, **found},
        {"size": "big", "gpu_bytes": 150 * 10**9, "estimated_tokens": 65_536, "error": "no"},
    )
    assert ["base", "16", "GB", "61,056", "NO", "60,160", "97.8", "%"] in lines
    assert ["big", "150", "GB", "65,536,", "the", "most", "does", "not", "fit"] in lines


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["fits.py"])
    with pytest.raises(SystemExit, match="there is no GPU here"):
        main()
