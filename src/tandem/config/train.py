"""The train section: what is learned at each step, and when it is enough."""

from typing import Annotated, Literal

from pydantic import Field

from tandem.config.section import RecipePath, Section

__all__ = ["TrainSection"]


class TrainSection(Section):
    """What is learned at each step, and when it is enough: the first limit that is met ends the run."""

    max_steps: Annotated[int, Field(ge=1)] = 100_000
    """Most steps."""

    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """Most target tokens learned from, each counted as often as it was seen."""

    max_minutes: Annotated[float, Field(gt=0)] | None = None
    """Most minutes of running, those before a resume included."""

    patience: Annotated[int, Field(ge=1)] | None = None
    """Stop after so many evaluations in a row without a better one."""

    patience_on: Literal["loss", "bleu"] = "loss"
    """What better means for patience: a lower loss or a higher BLEU on the valid text."""

    start_from: RecipePath | None = None
    """A run, checkpoint or bundle of the same shape and pieces whose weights training begins with; by default they
    are drawn at random."""

    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of probability that the loss wants spread over all pieces instead of the right one."""

    precision: Literal["auto", "fp32", "tf32", "bf16", "fp16", "fp8"] = "auto"
    """Numbers to multiply in; `auto` takes bf16 on a GPU that has it, fp16 on one that has not, fp32 on a CPU.
    `fp8` is for the linear maps of a wide model on a GPU that has it, with bf16 for all the rest."""
