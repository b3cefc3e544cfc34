"""A point of a curve by what it is, whatever its tool calls it."""

from dataclasses import dataclass

__all__ = ["Named"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A point, by what it is."""

    kind: str
    """As `train_loss` or `learning_rate`, `phase/…` of a Tandem run, or `score` for whatever calls itself one."""
    tag: str
    writer: str
    """Folder of the file, from the folder that was read."""
    file: str
    """From the same folder."""
    wall_s: float
    step: int
    value: float

    @property
    def is_judgement(self) -> bool:
        """Whether it is of an evaluation, and not of training."""
        return self.kind in {"eval_loss", "probe_loss", "score"}
