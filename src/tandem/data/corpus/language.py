"""The wrong-language filter, on py3langid (extra `[language]`)."""

import re

from tandem.data.corpus.filters import Candidate, Filter
from tandem.errors import TandemError

__all__ = ["build_language_filter"]

CONFIDENCE = 0.5
"""Below this the guess is not trusted: short sentences and lists of names look like any language."""


def build_language_filter(languages: tuple[str, str]) -> Filter:
    """A filter that drops a pair when either side is surely in another language than (source, target)."""
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415  (an optional, slow import)
    except ImportError as error:
        raise TandemError(
            "clean.language_id needs py3langid; install it with: pip install 'tandem-nmt[language]'."
        ) from error
    expected = [re.split("[-_]", language)[0] for language in languages]
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    known = set(identifier.nb_classes)
    if unknown := [language for language in expected if language not in known]:
        raise TandemError(
            f"clean.language_id does not know the language {unknown[0]!r}; set clean.language_id=false."
        )

    def is_wrong(text: str, right: str) -> bool:
        language, confidence = identifier.classify(text)
        return bool(language != right and confidence >= CONFIDENCE)

    def is_wrong_language(pair: Candidate) -> bool:
        return is_wrong(pair.source, expected[0]) or is_wrong(pair.target, expected[1])

    return is_wrong_language
