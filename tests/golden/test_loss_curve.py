"""A fixed seed's losses, step by step: a change that should change nothing leaves them as they are."""

import json
from pathlib import Path

import pytest

from tandem.config import load_recipe
from tandem.data.prepare import prepare
from tandem.runlog.event import LossMeasured, StepFinished
from tandem.runlog.reader import read_records
from tandem.train.assemble import Options, train_rank

GOLDEN = Path(__file__).parent / "loss-curve-v1"


def test_a_fixed_seed_gives_the_losses_it_always_gave(tmp_path: Path) -> None:
    recipe = load_recipe(GOLDEN / "recipe.yaml", [f"data.folder={tmp_path / 'data'}"]).recipe
    prepare(recipe, workers=1)
    train_rank(tmp_path / "run", recipe, Options(device="cpu", batch_tokens=256))
    events = [record.event for record in read_records(tmp_path / "run")]
    steps = [
        [event.loss, event.nll, event.gradient_norm] for event in events if isinstance(event, StepFinished)
    ]
    measured = {event.set: event.loss for event in events if isinstance(event, LossMeasured)}
    golden = json.loads((GOLDEN / "losses.json").read_text())
    # Other processors round in other ways; what is not rounding shows in the first digits.
    for found, expected in zip(steps, golden["steps"], strict=True):
        assert found == pytest.approx(expected, rel=1e-3)
    assert measured == pytest.approx(golden["measured"], rel=1e-3)
