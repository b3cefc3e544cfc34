"""The real command line learns: a part of the demo must reach a part of its score."""

import subprocess
import sys
from pathlib import Path

import pytest

from tandem.runlog.event import LossMeasured, TranslationScored
from tandem.runlog.reader import read_records

TANDEM = str(Path(sys.executable).with_name("tandem"))


@pytest.mark.xdist_group("learning")
def test_a_fifth_of_the_demo_s_steps_translate_a_fifth_as_well(repository: Path, tmp_path: Path) -> None:
    words = ["train", str(repository / "recipes" / "demo.yaml"), "--run", str(tmp_path / "run")]
    words += ["--workers", "1", "--device", "cpu", f"data.folder={tmp_path / 'data'}"]
    words += ["train.max_steps=200", "evaluate.sentences=100", "data.train.0.builtin.pairs=12000"]
    words += ["batch.target_tokens=1024"]
    subprocess.run([TANDEM, *words], check=True, capture_output=True, text=True, timeout=280)
    events = [record.event for record in read_records(tmp_path / "run")]
    losses = {event.set: event.loss for event in events if isinstance(event, LossMeasured)}
    scores = [event.bleu for event in events if isinstance(event, TranslationScored)]
    assert losses["valid"] < 2.0
    assert scores[-1] > 18
