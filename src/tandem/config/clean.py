"""The clean section: which sentence pairs are fit to learn from."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from tandem.config.section import Section

__all__ = ["CleanSection"]


class CleanSection(Section):
    """Which sentence pairs are fit to learn from; the data card counts each reason for dropping one.

    Words are what spaces part. In scripts without spaces, two characters of Chinese or Japanese count as a word, and
    five of Thai, Lao, Khmer, Burmese or Tibetan.
    """

    unicode_nfc: bool = True
    """Bring text into Unicode's composed form (NFC), so that one letter has one spelling."""

    strip_control: bool = True
    """Take out control, format and private-use characters; those that count as white space become a space."""

    markup: bool = True
    """Turn left-over entities (`&amp;`) into characters, and drop pairs with left-over tags (`<b>`)."""

    min_words: Annotated[int, Field(ge=1)] = 1
    """Shortest sentence kept, in words, on either side."""

    max_words: Annotated[int, Field(ge=1)] = 80
    """Longest sentence kept, in words, on either side."""

    max_ratio: Annotated[float, Field(ge=1)] = 9.0
    """Drop pairs in which one side has more than this many times the words of the other."""

    max_word_characters: Annotated[float, Field(ge=1)] = 40.0
    """Drop pairs with a word longer than this: web addresses and glued text."""

    drop_identical: bool = True
    """Drop pairs whose two sides are the same."""

    drop_duplicates: bool = True
    """Keep only the first of pairs that are the same on both sides."""

    language_id: bool = False
    """Drop pairs that are not in their languages; needs `pip install 'tandem-nmt[language]'`."""

    drop_held_out_overlap: bool = True
    """Drop training pairs of which either side is also in the valid or test text, whatever the case."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield bounds that would drop everything."""
        if self.min_words > self.max_words:
            yield "min_words", f"is {self.min_words}, more than max_words, which is {self.max_words}"
