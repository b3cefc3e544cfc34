"""German morphology: articles, adjective endings, nouns, verbs, pronouns and contractions, as pure functions."""

from dataclasses import dataclass
from typing import Literal

__all__ = [
    "ACC",
    "ADJECTIVE_ENDINGS",
    "DAT",
    "DEFINITE",
    "GEN",
    "NOM",
    "PLURAL",
    "PRONOUNS",
    "RELATIVE",
    "WER",
    "GermanPronoun",
    "GermanVerb",
    "der_word",
    "ein_word",
    "join_preposition",
    "noun_forms",
    "present_of",
    "preterite_of",
    "verb_from_parts",
    "wo_compound",
]

NOM, ACC, DAT, GEN = range(4)
PLURAL = 3  # the fourth column of every table, after masculine, feminine and neuter

Table = tuple[tuple[str, str, str, str], ...]

DEFINITE: Table = (
    ("der", "die", "das", "die"),
    ("den", "die", "das", "die"),
    ("dem", "der", "dem", "den"),
    ("des", "der", "des", "der"),
)
RELATIVE: Table = (
    ("der", "die", "das", "die"),
    ("den", "die", "das", "die"),
    ("dem", "der", "dem", "denen"),
    ("dessen", "deren", "dessen", "deren"),
)
WER = ("wer", "wen", "wem", "wessen")

_DER_ENDINGS: Table = (
    ("er", "e", "es", "e"),
    ("en", "e", "es", "e"),
    ("em", "er", "em", "en"),
    ("es", "er", "es", "er"),
)
_EIN_ENDINGS: Table = (
    ("", "e", "", "e"),
    ("en", "e", "", "e"),
    ("em", "er", "em", "en"),
    ("es", "er", "es", "er"),
)

Declension = Literal["strong", "mixed", "weak"]
ADJECTIVE_ENDINGS: dict[str, Table] = {
    "strong": (
        ("er", "e", "es", "e"),
        ("en", "e", "es", "e"),
        ("em", "er", "em", "en"),
        ("en", "er", "en", "er"),
    ),
    "mixed": (
        ("er", "e", "es", "en"),
        ("en", "e", "es", "en"),
        ("en", "en", "en", "en"),
        ("en", "en", "en", "en"),
    ),
    "weak": (
        ("e", "e", "e", "en"),
        ("en", "e", "e", "en"),
        ("en", "en", "en", "en"),
        ("en", "en", "en", "en"),
    ),
}

_CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("an", "dem"): "am",
    ("an", "das"): "ans",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("bei", "dem"): "beim",
    ("von", "dem"): "vom",
}
_INSEPARABLE = ("be", "ge", "er", "ver", "zer", "ent", "emp", "miss")
_SIBILANTS = ("s", "ß", "z", "x")


@dataclass(frozen=True, slots=True, kw_only=True)
class GermanPronoun:
    """A personal pronoun in its cases, with its reflexive, its possessive stem and its place in a conjugation table."""

    cases: tuple[str, str, str]
    reflexive: str
    possessive: str
    slot: int


def _pronoun(cases: str, reflexive: str, possessive: str, slot: int) -> GermanPronoun:
    nominative, accusative, dative = cases.split()
    return GermanPronoun(
        cases=(nominative, accusative, dative), reflexive=reflexive, possessive=possessive, slot=slot
    )


PRONOUNS = {
    "ich": _pronoun("ich mich mir", "mich", "mein", 0),
    "du": _pronoun("du dich dir", "dich", "dein", 1),
    # A thing keeps its German gender where English says it.
    "er/it": _pronoun("er ihn ihm", "sich", "sein", 2),
    "sie/it": _pronoun("sie sie ihr", "sich", "ihr", 2),
    "er": _pronoun("er ihn ihm", "sich", "sein", 2),
    "sie": _pronoun("sie sie ihr", "sich", "ihr", 2),
    "es": _pronoun("es es ihm", "sich", "sein", 2),
    "wir": _pronoun("wir uns uns", "uns", "unser", 3),
    "ihr": _pronoun("ihr euch euch", "euch", "euer", 4),
    "sie alle": _pronoun("sie sie ihnen", "sich", "ihr", 5),
    "Sie": _pronoun("Sie Sie Ihnen", "sich", "Ihr", 5),
}


def der_word(stem: str) -> Table:
    """Decline dieser, jeder, welcher … from the stem."""
    return _with_endings(stem, _DER_ENDINGS)


def ein_word(stem: str) -> Table:
    """Decline ein, kein, mein, euer … from the stem."""
    return _with_endings(stem, _EIN_ENDINGS)


def _with_endings(stem: str, endings: Table) -> Table:
    inflected = "eur" if stem == "euer" else stem
    rows = [[(inflected if ending else stem) + ending for ending in row] for row in endings]
    return tuple((row[0], row[1], row[2], row[3]) for row in rows)


def join_preposition(preposition: str, phrase: str) -> str:
    """Put a preposition before a phrase that begins with a plain article, contracting where German does."""
    article, _, rest = phrase.partition(" ")
    short = _CONTRACTIONS.get((preposition, article))
    return f"{short} {rest}" if short else f"{preposition} {phrase}"


def wo_compound(preposition: str) -> str:
    """Ask for a thing behind a preposition: worauf, womit."""
    return f"wo{'r' if preposition[0] in 'aeiouäöü' else ''}{preposition}"


def noun_forms(
    gender: int, singular: str, plural: str, *, oblique: str = "", genitive: str = ""
) -> tuple[str, ...]:
    """All eight forms: singular nominative, accusative, dative, genitive, then plural. `oblique` marks a weak noun."""
    if oblique:
        singular_forms = (singular, oblique, oblique, oblique)
    elif gender == 1:
        singular_forms = (singular,) * 4
    else:
        singular_forms = (singular, singular, singular, genitive or _genitive(singular))
    dative_plural = plural if not plural or plural[-1] in "ns" else plural + "n"
    return (*singular_forms, plural, plural, dative_plural, plural)


def _genitive(noun: str) -> str:
    if noun.endswith("nis"):
        return noun + "ses"
    if noun.endswith((*_SIBILANTS, "sch", "st")):
        return noun + "es"
    vowel_runs = sum(
        letter in "aeiouäöüy" and (i == 0 or noun[i - 1].lower() not in "aeiouäöüy")
        for i, letter in enumerate(noun.lower())
    )
    return noun + ("es" if vowel_runs == 1 and noun[-1] not in "aeiouäöüy" else "s")


@dataclass(frozen=True, slots=True, kw_only=True)
class GermanVerb:
    """A verb with everything that its forms are made of; the tables run ich, du, er, wir, ihr, sie."""

    infinitive: str
    prefix: str
    present: tuple[str, ...]
    preterite: tuple[str, ...]
    participle: str
    takes_sein: bool
    reflexive: bool

    @property
    def imperative(self) -> str:
        """Return the form that commands du, without its prefix: lies, warte, komm."""
        bare = self.infinitive.removeprefix(self.prefix)
        if bare in _IRREGULAR_IMPERATIVE:
            return _IRREGULAR_IMPERATIVE[bare]
        stem = _stem(bare)
        second = self.present[1]
        if "i" in second and not second.startswith(stem):
            return second.removesuffix("t" if stem.endswith(_SIBILANTS) else "st")
        if bare.endswith("eln"):
            return stem[:-2] + "le"
        return stem + "e"

    @property
    def zu_infinitive(self) -> str:
        """Return zu lesen, aufzustehen."""
        bare = self.infinitive.removeprefix(self.prefix)
        return f"{self.prefix}zu{bare}" if self.prefix else f"zu {bare}"


_IRREGULAR_IMPERATIVE = {"sein": "sei", "werden": "werde", "wissen": "wisse"}
_IRREGULAR_PRESENT = {
    "sein": ("bin", "bist", "ist", "sind", "seid", "sind"),
    "haben": ("habe", "hast", "hat", "haben", "habt", "haben"),
    "werden": ("werde", "wirst", "wird", "werden", "werdet", "werden"),
    "wissen": ("weiß", "weißt", "weiß", "wissen", "wisst", "wissen"),
    "können": ("kann", "kannst", "kann", "können", "könnt", "können"),
    "müssen": ("muss", "musst", "muss", "müssen", "müsst", "müssen"),
    "wollen": ("will", "willst", "will", "wollen", "wollt", "wollen"),
    "dürfen": ("darf", "darfst", "darf", "dürfen", "dürft", "dürfen"),
    "sollen": ("soll", "sollst", "soll", "sollen", "sollt", "sollen"),
    "mögen": ("mag", "magst", "mag", "mögen", "mögt", "mögen"),
    "möchten": ("möchte", "möchtest", "möchte", "möchten", "möchtet", "möchten"),
}


def _stem(infinitive: str) -> str:
    return infinitive.removesuffix("en") if infinitive.endswith("en") else infinitive.removesuffix("n")


def _needs_e(stem: str) -> bool:
    if stem[-1] in "dt":
        return True
    return stem.endswith("chn") or (len(stem) > 2 and stem[-1] in "mn" and stem[-2] not in "aeiouäöülrmnh")


def present_of(infinitive: str, third: str = "") -> tuple[str, ...]:
    """Conjugate the present; `third` is the er-form where its vowel changes (isst, fährt, hält)."""
    if infinitive in _IRREGULAR_PRESENT:
        return _IRREGULAR_PRESENT[infinitive]
    stem = _stem(infinitive)
    e = "e" if _needs_e(stem) else ""
    first = stem[:-2] + "le" if infinitive.endswith("eln") else stem + "e"
    second = stem + ("t" if stem.endswith(_SIBILANTS) else e + "st")
    regular = stem + e + "t"
    if third and third != regular:
        changed = third if stem.endswith("t") else third[:-1]
        second = changed + ("t" if changed.endswith(_SIBILANTS) else "st")
    return (first, second, third or regular, infinitive, regular, infinitive)


def preterite_of(third: str) -> tuple[str, ...]:
    """Conjugate the simple past from its er-form: kaufte, ging, fand."""
    if third.endswith("e"):
        return (third, third + "st", third, third + "n", third + "t", third + "n")
    e = "e" if third[-1] in "dt" else ""
    second = third + ("est" if e or third.endswith(_SIBILANTS) else "st")
    return (third, second, third, third + "en", third + e + "t", third + "en")


def verb_from_parts(text: str) -> GermanVerb:
    """Read `sich auf-stehen steht stand gestanden s`: infinitive, er-form, simple past, participle, s for sein.

    A regular verb needs its infinitive alone; a hyphen marks a separable prefix, which the other parts leave out.
    """
    parts = text.split()
    reflexive = parts[0] == "sich"
    if reflexive:
        parts = parts[1:]
    takes_sein = parts[-1] == "s"
    if takes_sein:
        parts = parts[:-1]
    prefix, _, bare = parts[0].rpartition("-")
    third, past, participle = parts[1:] if len(parts) > 1 else _weak_parts(bare)
    return GermanVerb(
        infinitive=prefix + bare,
        prefix=prefix,
        present=present_of(bare, third),
        preterite=preterite_of(past),
        participle=prefix + participle,
        takes_sein=takes_sein,
        reflexive=reflexive,
    )


def _weak_parts(infinitive: str) -> tuple[str, str, str]:
    stem = _stem(infinitive)
    e = "e" if _needs_e(stem) else ""
    ge = "" if infinitive.endswith("ieren") or infinitive.startswith(_INSEPARABLE) else "ge"
    return "", f"{stem}{e}te", f"{ge}{stem}{e}t"
