"""What the lexicon holds: nouns, adjectives, verbs and adverbials, each in both languages, read from lines of text."""

from dataclasses import dataclass

from tandem.data.corpus.builtin import english, german
from tandem.data.corpus.builtin.english import EnglishVerb
from tandem.data.corpus.builtin.german import ACC, DAT, GermanVerb

__all__ = [
    "Adjective",
    "Adverb",
    "Noun",
    "Place",
    "Slot",
    "Verb",
    "adjective_from_line",
    "noun_from_line",
    "place_from_line",
    "verb_from_line",
]

_ARTICLES = {"der": 0, "die": 1, "das": 2}
_CASES = {"acc": ACC, "dat": DAT}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Noun:
    """A noun: eight German forms, two English ones, and the classes that it belongs to."""

    gender: int
    german: tuple[str, ...]
    english: tuple[str, str]
    tags: frozenset[str]

    @property
    def is_mass(self) -> bool:
        """Whether it has no plural: milk, rice."""
        return not self.german[4]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place:
    """A noun that one can be at and go to, with the prepositions for both."""

    noun: Noun
    at: tuple[str, str]
    to: tuple[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Adjective:
    """An adjective in three degrees; `german` holds stems that take endings, `predicate` the bare word."""

    predicate: str
    german: tuple[str, str, str]
    english: tuple[str, str, str]
    tags: frozenset[str]
    is_graded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A place for a complement: German preposition (or none) and case, English preposition, what may fill it."""

    preposition: str
    case: int
    english: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verb:
    """A verb with who may do it, to what, and the fixed words that go with it (Hunger haben, be hungry)."""

    german: GermanVerb
    english: EnglishVerb
    german_tail: str
    german_denied: str
    english_tail: str
    subjects: tuple[str, ...]
    slots: tuple[Slot, ...]
    flags: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Adverb:
    """A fixed adverbial; `kind` says where in the clause it stands."""

    german: str
    english: str
    kind: str


def _fields(line: str) -> list[str]:
    return [field.strip() for field in line.split("|")]


def _commas(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def noun_from_line(line: str) -> Noun:
    """Read `der Junge, Jungen, * | boy | person`: a third part is the genitive, or with * the weak form."""
    german_text, english_text, tags = _fields(line)[:3]
    article, _, rest = german_text.partition(" ")
    singular, plural, *special = _commas(rest)
    plural = "" if plural == "-" else plural
    extra = special[0] if special else ""
    oblique = (extra[1:] or plural) if extra.startswith("*") else ""
    forms = german.noun_forms(
        _ARTICLES[article], singular, plural, oblique=oblique, genitive="" if oblique else extra
    )
    one, *many = _commas(english_text)
    return Noun(
        gender=_ARTICLES[article],
        german=forms,
        english=(one, many[0] if many else english.plural_of(one)),
        tags=frozenset(tags.split()),
    )


def place_from_line(line: str) -> Place:
    """Read `der Park, Parks, Parks | park | open | in in | in to`: being there, then going there."""
    *_, at, to = _fields(line)
    here, there = at.split(" ", 1), to.split(" ", 1)
    return Place(
        noun=noun_from_line(line),
        at=(here[0], here[1]),
        to=(there[0], there[1]) if len(there) > 1 else None,
    )


def adjective_from_line(line: str) -> Adjective:
    """Read `gut, besser, best | good, better, best | food text`; a leading `teuer/teur` gives the inflected stem."""
    german_text, english_text, tags = _fields(line)
    head, *degrees = _commas(german_text)
    predicate, _, stem = head.partition("/")
    stem = stem or predicate
    comparative, superlative = degrees or (stem.removesuffix("e") + "er", _superlative_stem(predicate))
    plain, *graded = _commas(english_text)
    is_graded = "-" not in degrees and "-" not in graded
    better, best = (
        graded if len(graded) == 2 else (english.comparative_of(plain), english.superlative_of(plain))
    )
    return Adjective(
        predicate=predicate,
        german=(stem.removesuffix("e"), comparative, superlative),
        english=(plain, better, best),
        tags=frozenset(tags.split()),
        is_graded=is_graded,
    )


def _superlative_stem(predicate: str) -> str:
    if predicate.endswith(("d", "t", "s", "ß", "z", "sch", "eu", "au")) and not predicate.endswith("end"):
        return predicate + "est"
    return predicate.removesuffix("e") + "st" if not predicate.endswith("e") else predicate + "st"


def verb_from_line(line: str) -> Verb:
    """Read `warten | wait | person | auf:acc=for vehicle person | flags`.

    A tail follows `=` after the verb (`haben =Hunger~keinen Hunger | be =hungry`), its denied German form after `~`.
    """
    german_text, english_text, subjects, complement, flags = _fields(line)
    german_verb, _, german_tail = german_text.partition("=")
    english_verb, _, english_tail = english_text.partition("=")
    tail, _, denied = german_tail.partition("~")
    return Verb(
        german=german.verb_from_parts(german_verb),
        english=english.verb_from_parts(english_verb),
        german_tail=tail.strip(),
        german_denied=denied.strip() or f"nicht {tail.strip()}".strip(),
        english_tail=english_tail.strip(),
        subjects=tuple(subjects.split()),
        slots=tuple(_slot(text) for text in _commas(complement) if text),
        flags=frozenset(flags.split()),
    )


def _slot(text: str) -> Slot:
    head, *tags = text.split()
    role, _, preposition = head.partition("=")
    before, _, case = role.rpartition(":")
    return Slot(
        preposition=before, case=_CASES[case], english=preposition.replace("_", " "), tags=tuple(tags)
    )
