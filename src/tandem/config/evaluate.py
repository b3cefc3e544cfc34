"""The evaluate section: how often the model is judged while it learns, and how."""

import re
from typing import Annotated, Literal

from pydantic import Field

from tandem.config.section import Section

__all__ = ["EvaluateSection"]


_CHINESE = frozenset({"zh", "zho", "cmn", "yue", "lzh", "wuu", "nan", "hak"})
_WITHOUT_SPACES = frozenset({"bo", "bod", "ja", "jpn", "km", "khm", "lo", "lao", "my", "mya", "th", "tha"})


class EvaluateSection(Section):
    """How often the model is judged on the valid text while it learns, and how."""

    every_steps: Annotated[int, Field(ge=1)] | None = 1000
    """Steps from one evaluation to the next; null for none by steps."""

    every_minutes: Annotated[float, Field(gt=0)] | None = None
    """Minutes from one evaluation to the next; null for none by time."""

    probe_pairs: Annotated[int, Field(ge=0)] = 1000
    """Training pairs judged like the valid text each time, so that the two can be compared."""

    sentences: Annotated[int, Field(ge=0)] | None = None
    """Most sentences of the valid text translated for BLEU and chrF; null for all, 0 for none."""

    beam: Annotated[int, Field(ge=1, le=100)] = 4
    """Translations followed side by side by the search; 1 takes the best piece each time."""

    length_penalty: Annotated[float, Field(ge=0, le=10)] = 0.6
    """How strongly the search makes up for length, which costs probability; 0 favours short translations."""

    samples: Annotated[int, Field(ge=0, le=100)] = 3
    """Translations shown each time, with source and reference."""

    tokenize: Literal["auto", "13a", "intl", "char", "zh", "none"] = "auto"
    """How sacreBLEU splits words before it compares: `auto` is `zh` for Chinese, `char` for other languages that are
    written without spaces, and `13a` for all others; `none` is for text that is already split."""

    lowercase: bool = False
    """Compare without regard to case."""

    def tokenizer(self, target_language: str) -> str:
        """How sacreBLEU splits words of this language."""
        if self.tokenize != "auto":
            return self.tokenize
        language = re.split("[-_]", target_language)[0]
        if language in _CHINESE:
            return "zh"
        return "char" if language in _WITHOUT_SPACES else "13a"
