"""What a sentence means before it is said in either language: who does what to whom, when, where and how."""

from dataclasses import dataclass
from enum import Enum

from tandem.data.corpus.builtin import english, german
from tandem.data.corpus.builtin.german import ACC, PLURAL
from tandem.data.corpus.builtin.words import Adjective, Adverb, Noun, Verb

__all__ = [
    "ALL",
    "BARE",
    "EVERY",
    "FEW",
    "MANY",
    "NO",
    "SOME",
    "THE",
    "THIS",
    "WHICH",
    "A",
    "Adjunct",
    "Adverbial",
    "Asked",
    "Clause",
    "Determiner",
    "Fixed",
    "Modal",
    "Name",
    "Nominal",
    "Pair",
    "Person",
    "Phrase",
    "Quality",
    "Relative",
    "Role",
    "Tense",
    "is_indefinite",
    "is_moved",
    "possessive",
]  # fmt: skip


class Tense(Enum):
    """A pairing of a German tense with the English one that says the same."""

    NOW = "present / progressive"
    HABIT = "present / simple present"
    SINCE = "present / present perfect"
    SPOKEN = "perfect / simple past"
    TOLD = "simple past / simple past"
    WAS_DOING = "simple past / past progressive"
    DONE = "perfect / present perfect"
    BEFORE = "past perfect / past perfect"
    FUTURE = "future / will"


class Modal(Enum):
    """A modal verb, by its German infinitive."""

    CAN = "können"
    MUST = "müssen"
    WANT = "wollen"
    MAY = "dürfen"
    SHOULD = "sollen"
    WOULD_LIKE = "möchten"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Determiner:
    """An article or another word in its place: declined in German, singular and plural in English."""

    table: tuple[tuple[str, str, str, str], ...]
    declension: str
    english: tuple[str, str]
    is_definite: bool
    contracts: bool = False


_NOTHING = (("", "", "", ""),) * 4


def _fixed(word: str) -> tuple[tuple[str, str, str, str], ...]:
    return ((word, word, word, word),) * 4


THE = Determiner(
    table=german.DEFINITE, declension="weak", english=("the", "the"), is_definite=True, contracts=True
)
A = Determiner(table=german.ein_word("ein"), declension="mixed", english=("a", ""), is_definite=False)
BARE = Determiner(table=_NOTHING, declension="strong", english=("", ""), is_definite=False)
NO = Determiner(table=german.ein_word("kein"), declension="mixed", english=("no", "no"), is_definite=False)
THIS = Determiner(
    table=german.der_word("dies"), declension="weak", english=("this", "these"), is_definite=True
)
EVERY = Determiner(table=german.der_word("jed"), declension="weak", english=("every", ""), is_definite=True)
WHICH = Determiner(
    table=german.der_word("welch"), declension="weak", english=("which", "which"), is_definite=True
)
ALL = Determiner(table=german.der_word("all"), declension="weak", english=("", "all the"), is_definite=True)
MANY = Determiner(table=german.der_word("viel"), declension="strong", english=("", "many"), is_definite=False)
SOME = Determiner(
    table=german.der_word("einig"), declension="strong", english=("", "some"), is_definite=False
)
FEW = Determiner(table=_fixed("ein paar"), declension="strong", english=("", "a few"), is_definite=False)

_POSSESSIVES = {
    name: Determiner(
        table=german.ein_word(pronoun.possessive),
        declension="mixed",
        english=(english.PRONOUNS[name].possessive,) * 2,
        is_definite=True,
    )
    for name, pronoun in german.PRONOUNS.items()
}


def possessive(pronoun: str) -> Determiner:
    """Return my, your, his … for the owner's pronoun."""
    return _POSSESSIVES[pronoun]


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A personal pronoun, named by its German nominative; they is `sie alle`."""

    pronoun: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A proper name, the same in both languages but for a title; `pronoun` refers back to it."""

    text: str
    pronoun: str
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two people or things joined by and."""

    first: "Nominal"
    second: "Nominal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relative:
    """The place in a relative clause that its noun fills."""

    column: int
    is_person: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The place in a question that who or what asks for."""

    is_person: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """A complement that needs no grammar: 250 euros, 34 years old."""

    german: str
    english: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A profession after be or become, which German says without an article."""

    noun: Noun


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """A predicate adjective: old, very old, older than …, as old as …."""

    adjective: Adjective
    degree: int = 0
    intensifier: Adverb | None = None
    standard: "Nominal | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """A noun with all that may stand around it."""

    noun: Noun
    determiner: Determiner
    is_plural: bool = False
    count: int = 0
    adjectives: tuple[Adjective, ...] = ()
    degree: int = 0
    owner: "Phrase | Name | None" = None
    relative: "Clause | None" = None

    @property
    def column(self) -> int:
        """Its column in the German tables."""
        return PLURAL if self.is_plural else self.noun.gender


Nominal = Person | Name | Pair | Phrase | Relative | Asked | Fixed | Role | Quality


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjunct:
    """A prepositional phrase that says where, where to or with whom; `kind` as for an Adverb."""

    preposition: str
    case: int
    english: str
    nominal: Nominal
    kind: str


Adverbial = Adverb | Adjunct


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One verb with its subject, its complements in the order of the verb's slots, and its circumstances."""

    verb: Verb
    subject: Nominal
    tense: Tense
    complements: tuple[Nominal, ...] = ()
    predicate: Nominal | None = None
    modal: Modal | None = None
    is_negated: bool = False
    is_passive: bool = False
    adverbials: tuple[Adverbial, ...] = ()
    front: Adverbial | None = None

    @property
    def denies_object(self) -> bool:
        """Whether German says kein before the object rather than nicht."""
        return self.is_negated and any(
            slot.case == ACC and not slot.preposition and is_indefinite(nominal)
            for slot, nominal in zip(self.verb.slots, self.complements, strict=False)
        )


def is_indefinite(nominal: Nominal) -> bool:
    """Whether kein may deny it: a book, books, milk."""
    return (
        isinstance(nominal, Phrase)
        and nominal.determiner in (A, BARE)
        and not nominal.count
        and not nominal.owner
    )


def is_moved(nominal: Nominal) -> bool:
    """Whether it goes to the head of its clause in both languages: who, which book, the book that …."""
    return isinstance(nominal, Relative | Asked) or (
        isinstance(nominal, Phrase) and nominal.determiner is WHICH
    )
