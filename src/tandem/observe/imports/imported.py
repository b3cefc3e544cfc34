"""What an import brought, and what the files could not tell."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tandem.artefact import JsonValue
from tandem.runlog.event import Event, LossMeasured, ScoreImported, StepFinished, TrainingStarted

__all__ = ["Imported", "sum_up"]

_NO_BLEU = "Eval_BLEU_Score"
"""Of pieces that OpenSeq2Seq guesses after the reference's own: nothing is translated for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A run that was imported."""

    run: Path
    steps: int
    """Lines or points about steps; each may stand for many."""
    first_step: int
    last_step: int
    evaluations: int
    restarts: int
    torn: int
    """Files that end in the midst of something."""
    unused: tuple[str, ...]
    """Curves of which it is not known what they are."""
    untold: tuple[str, ...]
    """What the files do not say."""


def sum_up(
    run: Path,
    events: Sequence[Event],
    *,
    facts: Mapping[str, JsonValue],
    times: str,
    torn: int = 0,
    unused: tuple[str, ...] = (),
) -> Imported:
    """Count what there is, and name what there is not."""
    steps = [event for event in events if isinstance(event, StepFinished)]
    numbers = [event.step for event in steps] or [0]
    return Imported(
        run=run,
        steps=len(steps),
        first_step=min(numbers),
        last_step=max(numbers),
        evaluations=len({event.step for event in events if isinstance(event, LossMeasured | ScoreImported)}),
        restarts=max(0, sum(isinstance(event, TrainingStarted) for event in events) - 1),
        torn=torn,
        unused=unused,
        untold=tuple(_untold(events, facts=facts, times=times)),
    )


def _untold(events: Sequence[Event], *, facts: Mapping[str, JsonValue], times: str) -> list[str]:
    steps = [event for event in events if isinstance(event, StepFinished)]
    scores = {event.name for event in events if isinstance(event, ScoreImported)}
    lacks = {
        "the time of day": times != "wall",
        "how long a step takes": all(math.isnan(step.duration_s) for step in steps),
        "the learning rate as it was used": all(math.isnan(step.learning_rate) for step in steps),
        "the number of GPUs": "gpus" not in facts,
        "the number of hosts": "hosts" not in facts,
        "where the time of a step went": not any(step.phases for step in steps),
        "what the links carried": "observed_nic_bytes_per_s" not in facts,
        "what the GPUs did": "observed_gpu_utilisation" not in facts,
        "target tokens": not any(step.target_tokens for step in steps),
        "BLEU of translations": not any("bleu" in name.lower() for name in scores - {_NO_BLEU}),
        "the size of the training set": True,
        "the size of checkpoints": True,
    }
    return [name for name, is_lacking in lacks.items() if is_lacking]
