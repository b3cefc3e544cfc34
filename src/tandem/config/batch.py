"""The batch section: how much text one update learns from."""

from typing import Annotated, Literal

from pydantic import Field

from tandem.config.section import Section

__all__ = ["BatchSection"]


class BatchSection(Section):
    """How much text one update learns from."""

    target_tokens: Annotated[int, Field(ge=4)] = 25_000
    """Target tokens of one update over all ranks; batches for each device are derived from it."""
    shares: Literal["auto", "even"] = "even"
    """How ranks share an update: `even` in equal parts, `auto` by their measured speed."""
