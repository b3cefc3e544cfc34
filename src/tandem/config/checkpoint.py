"""The checkpoint section: how often the run is saved, and what is kept."""

from typing import Annotated

from pydantic import Field

from tandem.config.section import Section

__all__ = ["CheckpointSection"]


class CheckpointSection(Section):
    """How often the run is saved besides after each evaluation, and what is kept."""

    every_steps: Annotated[int, Field(ge=1)] | None = None
    """Steps from one checkpoint to the next, besides those of evaluations; null for none by steps."""

    every_minutes: Annotated[float, Field(gt=0)] | None = 30.0
    """Minutes after which a run is saved if nothing else has saved it; null for none by time."""

    keep_last: Annotated[int, Field(ge=1)] = 3
    """Newest checkpoints kept."""

    keep_best: Annotated[int, Field(ge=0)] = 3
    """Checkpoints kept for their loss on the valid text, and as many for their BLEU."""
