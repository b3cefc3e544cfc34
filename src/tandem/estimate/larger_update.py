"""A larger update: the same exchange for more text, and what that costs."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from tandem.estimate.exchange import MOST_EXPOSED

__all__ = ["LargerUpdate"]

_TIMES = (2, 4, 8, 16)
_WORDS = {2: "half", 4: "a quarter", 8: "an eighth", 16: "a sixteenth"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LargerUpdate:
    """An update of so many times the tokens, whose exchange stays as it is."""

    times: int
    tokens: int
    """Target tokens of it; 0 where nobody knows how many there are now."""
    before: float
    """Share of a step that is exposed exchange, as it is now."""
    after: float
    gain: float
    """Tokens a second, against now."""

    @classmethod
    def choose(cls, step_and_exposed: Callable[[int], tuple[float, float]], *, tokens: int) -> Self:
        """The smallest one whose exchange hardly shows, or the largest that is considered.

        The function gives seconds of a step and of its exposed exchange for an update of so many times the tokens.
        """
        step_s, exposed_s = step_and_exposed(1)
        for times in _TIMES:
            longer_s, left_s = step_and_exposed(times)
            if left_s <= MOST_EXPOSED * longer_s:
                break
        return cls(
            times=times,
            tokens=tokens * times,
            before=exposed_s / step_s,
            after=left_s / longer_s,
            gain=times * step_s / longer_s,
        )

    def __str__(self) -> str:
        """Speed, its price, and the rule for the learning rate, with no promise of quality."""
        setting = f"batch.target_tokens={self.tokens}" if self.tokens else "batch.target_tokens"
        return (
            f"An update of {self.times} times the text ({setting}) would bring the exchange from "
            f"{100 * self.before:.0f} % of a step to {100 * self.after:.0f} %, and {self.gain:.2g} times the tokens/s; "
            f"the same text then makes {_WORDS[self.times]} as many updates. The usual rule for Adam multiplies "
            f"optim.learning_rate by the square root of that, {math.sqrt(self.times):.2g}. What it does to quality "
            "is not known before it is tried: too few updates learn less."
        )
