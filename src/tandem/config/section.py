"""What every section of a recipe shares: frozen, strict, and free of contradictions."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

__all__ = ["ContradictionError", "RecipePath", "Section"]


class ContradictionError(ValueError):
    """Values that are fine one by one but do not fit together, each as (key within the section, sentence)."""

    def __init__(self, found: tuple[tuple[str, str], ...]) -> None:
        super().__init__("; ".join(f"{key} {sentence}" for key, sentence in found))
        self.found = found


class Section(BaseModel):
    """A part of a recipe; the sentence under each field is its help."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, what is wrong with it and the cure) for values that do not fit together."""
        yield from ()

    @model_validator(mode="before")
    @classmethod
    def _empty_means_defaults(cls, values: Any) -> Any:
        return {} if values is None else values

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if found := tuple(self.contradictions()):
            raise ContradictionError(found)
        return self


def _as_path(value: object) -> object:
    # Path("") is the current folder, which nobody means by an empty value.
    return Path(value) if isinstance(value, str) and value else value


RecipePath = Annotated[Path, BeforeValidator(_as_path)]
"""A path; `load_recipe` makes it absolute."""
