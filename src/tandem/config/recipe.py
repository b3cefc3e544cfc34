"""The recipe: everything that says what a run learns."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from tandem.config.batch import BatchSection
from tandem.config.clean import CleanSection
from tandem.config.data import DataSection
from tandem.config.section import Section
from tandem.config.subword import SubwordSection

__all__ = ["Recipe"]

_SENTENCES_AN_UPDATE = 4


class Recipe(Section):
    """What a run learns: the same recipe gives the same updates on any number of machines."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
    """What the run is called: letters, digits, - _ and . with a letter or digit first."""

    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """Where all randomness comes from; the same seed gives the same run."""

    data: DataSection
    """Which text to learn from, which to watch and which to judge by."""

    clean: CleanSection = CleanSection()
    """Which sentence pairs are fit to learn from."""

    subword: SubwordSection = SubwordSection()
    """How sentences become pieces."""

    batch: BatchSection = BatchSection()
    """How much text one update learns from."""

    @property
    def prepared_folder(self) -> Path:
        """Return where prepared data goes."""
        return self.data.folder or Path("prepared") / self.name

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield what does not fit together across sections."""
        needed = _SENTENCES_AN_UPDATE * self.subword.max_pieces
        tokens = self.batch.target_tokens
        if tokens < needed:
            sentence = (
                f"is {tokens}, too few for {_SENTENCES_AN_UPDATE} of the longest sentences: make it at least "
                f"{needed}, or subword.max_pieces at most {tokens // _SENTENCES_AN_UPDATE}"
            )
            yield "batch.target_tokens", sentence
