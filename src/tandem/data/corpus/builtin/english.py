"""English morphology: plurals, articles, verb forms and comparison, as pure functions."""

from dataclasses import dataclass

__all__ = [
    "PRONOUNS",
    "EnglishPronoun",
    "EnglishVerb",
    "comparative_of",
    "indefinite_article",
    "ing_of",
    "plural_of",
    "possessive_of",
    "superlative_of",
    "verb_from_parts",
]

_VOWELS = "aeiou"
_SILENT_H = ("hour", "honest")
_YOU_SOUND = ("uni", "use", "euro", "ukulele", "one")
_STRESSED_LAST = {"forget", "begin", "prefer", "refer", "regret", "permit"}
# British English doubles a final l whatever the stress.
_DOUBLED_L = ("travel", "cancel")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnglishPronoun:
    """A personal pronoun: subject, object, possessive and reflexive, and the form of `be` that it takes."""

    subject: str
    object: str
    possessive: str
    plural: bool


PRONOUNS = {
    name: EnglishPronoun(subject=subject, object=object_, possessive=possessive, plural=plural)
    for name, subject, object_, possessive, plural in (
        ("ich", "I", "me", "my", False),
        ("du", "you", "you", "your", True),
        ("er/it", "it", "it", "its", False),
        ("sie/it", "it", "it", "its", False),
        ("er", "he", "him", "his", False),
        ("sie", "she", "her", "her", False),
        ("es", "it", "it", "its", False),
        ("wir", "we", "us", "our", True),
        ("ihr", "you", "you", "your", True),
        ("sie alle", "they", "them", "their", True),
        ("Sie", "you", "you", "your", True),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EnglishVerb:
    """A verb with its principal parts and, for get up, its particle."""

    base: str
    third: str
    past: str
    participle: str
    ing: str
    particle: str


def indefinite_article(word: str) -> str:
    """Choose a or an by the sound that `word` begins with."""
    lowered = word.lower()
    if lowered.startswith(_SILENT_H) or lowered.startswith(("8", "11 ", "18 ")):
        return "an"
    if lowered.startswith(_YOU_SOUND) and not lowered.startswith("unin"):
        return "a"
    return "an" if lowered[0] in _VOWELS else "a"


def plural_of(noun: str) -> str:
    """Make the regular plural."""
    if noun.endswith(("s", "x", "ch", "sh", "z")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in _VOWELS:
        return noun[:-1] + "ies"
    return noun + "s"


def possessive_of(noun: str, *, is_plural: bool) -> str:
    """Add 's, or the bare apostrophe after a plural in s."""
    return noun + ("'" if is_plural and noun.endswith("s") else "'s")


def _syllables(word: str) -> int:
    return sum(c in "aeiouy" and (i == 0 or word[i - 1] not in "aeiouy") for i, c in enumerate(word))


def _doubles(word: str) -> bool:
    if word in _STRESSED_LAST or word in _DOUBLED_L:
        return True
    if _syllables(word) != 1 or len(word) < 3 or word[-1] in "wxy":
        return False
    return word[-1] not in _VOWELS and word[-2] in _VOWELS and word[-3] not in _VOWELS


def ing_of(base: str) -> str:
    """Make the -ing form: reading, making, running, lying."""
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith(("ee", "oe")) and base != "be":
        return base[:-1] + "ing"
    return (base + base[-1] if _doubles(base) else base) + "ing"


def _past_of(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in _VOWELS:
        return base[:-1] + "ied"
    return (base + base[-1] if _doubles(base) else base) + "ed"


def verb_from_parts(text: str) -> EnglishVerb:
    """Read `get got got +up`: base, past, participle, particle. A regular verb needs its base alone."""
    parts = [part for part in text.split() if not part.startswith("+")]
    particle = " ".join(part[1:] for part in text.split() if part.startswith("+"))
    base = parts[0]
    past, participle = parts[1:] if len(parts) > 1 else (_past_of(base), _past_of(base))
    third = {"be": "is", "have": "has", "go": "goes", "do": "does"}.get(base) or plural_of(base)
    return EnglishVerb(
        base=base, third=third, past=past, participle=participle, ing=ing_of(base), particle=particle
    )


def _takes_er(adjective: str) -> bool:
    return _syllables(adjective.removesuffix("e")) == 1 or (
        adjective.endswith("y") and _syllables(adjective) == 2 and "-" not in adjective
    )


def _graded(adjective: str, suffix: str) -> str:
    if adjective.endswith("e"):
        return adjective + suffix[1:]
    if adjective.endswith("y") and adjective[-2] not in _VOWELS:
        return adjective[:-1] + "i" + suffix
    return (adjective + adjective[-1] if _doubles(adjective) else adjective) + suffix


def comparative_of(adjective: str) -> str:
    """Make bigger, friendlier, more expensive."""
    return _graded(adjective, "er") if _takes_er(adjective) else f"more {adjective}"


def superlative_of(adjective: str) -> str:
    """Make biggest, friendliest, most expensive."""
    return _graded(adjective, "est") if _takes_er(adjective) else f"most {adjective}"
