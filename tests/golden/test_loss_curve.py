"""A fixed seed's losses, step by step: a change that should change nothing leaves them as they are."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tandem.config import load_recipe
from tandem.data.prepare import prepare
from tandem.runlog.event import LossMeasured, StepFinished, TrainingStarted
from tandem.runlog.reader import read_records
from tandem.train.assemble import Options, train_rank

GOLDEN = Path(__file__).parent / "loss-curve-v1"


def learn(folder: Path, *overrides: str, device: str, batch_tokens: int) -> dict[str, Any]:
    """Losses and gradient norm of every step, and what was measured at the end."""
    recipe = load_recipe(GOLDEN / "recipe.yaml", [f"data.folder={folder / 'data'}", *overrides]).recipe
    prepare(recipe, workers=1)
    train_rank(folder / "run", recipe, Options(device=device, batch_tokens=batch_tokens))
    events = [record.event for record in read_records(folder / "run")]
    return {
        "way": next(event.way for event in events if isinstance(event, TrainingStarted)),
        "steps": [
            [event.loss, event.nll, event.gradient_norm]
            for event in events
            if isinstance(event, StepFinished)
        ],
        "measured": {event.set: event.loss for event in events if isinstance(event, LossMeasured)},
    }


def assert_alike(found: dict[str, Any], name: str, *, share: float) -> None:
    golden = json.loads((GOLDEN / name).read_text())
    for mine, expected in zip(found["steps"], golden["steps"], strict=True):
        assert mine == pytest.approx(expected, rel=share)
    assert found["measured"] == pytest.approx(golden["measured"], rel=share)


def test_a_fixed_seed_gives_the_losses_it_always_gave(tmp_path: Path) -> None:
    # Other processors round in other ways; what is not rounding shows in the first digits.
    assert_alike(learn(tmp_path, device="cpu", batch_tokens=256), "losses.json", share=1e-3)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_fixed_seed_gives_the_losses_it_always_gave_on_a_gpu(tmp_path: Path) -> None:
    found = learn(tmp_path, "train.precision=bf16", device="cuda", batch_tokens=512)
    assert found["way"] == "graph"
    assert_alike(found, "losses-gpu.json", share=2e-3)
