from typing import ClassVar

from tandem.observe.imports.curves import Curves
from tandem.observe.imports.named import Named
from tandem.observe.imports.rows import tell_curves


class Counted(float):
    """A time that counts how often it is compared."""

    compared: ClassVar[int] = 0

    def __lt__(self, other: float) -> bool:
        Counted.compared += 1
        return float(self) < float(other)

    def __le__(self, other: float) -> bool:
        Counted.compared += 1
        return float(self) <= float(other)


def test_evaluations_are_looked_up_and_not_gone_through_for_each_step() -> None:
    count = 2000
    points = [
        Named(kind=kind, tag=kind, writer="", file="a", wall_s=Counted(step + late), step=step, value=1.0)
        for step in range(count)
        for kind, late in (("train_loss", 0.0), ("eval_loss", 0.5))
    ]
    assert len(list(tell_curves(Curves(points=points)))) == 2 * count + 1
    assert Counted.compared < 100 * count
