"""What counts as a word in cleaning: what white space parts, and in scripts without spaces so many characters."""

import re

__all__ = ["words_of"]

_IDEOGRAPHS = (
    "\u2e80-\u2fdf\u3001-\u303f\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff01-\uff9f\U00020000-\U0003ffff"
)
"""Han, kana and bopomofo, with their punctuation and full-width forms; not Hangul, which is written with spaces."""
_SYLLABLES = "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f"
"""Thai, Lao, Tibetan, Burmese and Khmer."""
_UNSPACED = re.compile(f"[{_IDEOGRAPHS}{_SYLLABLES}]")
# A word of Chinese or Japanese has about two characters, one of the others about five.
_PARTS = re.compile(f"[{_IDEOGRAPHS}]{{1,2}}|[{_SYLLABLES}]{{1,5}}|[^{_IDEOGRAPHS}{_SYLLABLES}]+")


def words_of(text: str) -> list[str]:
    """The words of a sentence; stretches that are written without spaces are cut where so many characters make one."""
    words = text.split()
    if text.isascii() or _UNSPACED.search(text) is None:
        return words
    return [part for word in words for part in _PARTS.findall(word)]
