"""Says phrases and clauses in German: case, agreement, and the order of words around the verb."""

from dataclasses import dataclass, field
from typing import Literal

from tandem.data.corpus.builtin.german import (
    ACC,
    ADJECTIVE_ENDINGS,
    DAT,
    GEN,
    NOM,
    PRONOUNS,
    RELATIVE,
    WER,
    join_preposition,
    present_of,
    preterite_of,
    verb_from_parts,
    wo_compound,
)
from tandem.data.corpus.builtin.meaning import (
    NO,
    Adverbial,
    Asked,
    Clause,
    Fixed,
    Modal,
    Name,
    Nominal,
    Pair,
    Person,
    Phrase,
    Quality,
    Relative,
    Role,
    Tense,
    is_indefinite,
    is_moved,
)
from tandem.data.corpus.builtin.numerals import german_cardinal
from tandem.data.corpus.builtin.words import Adverb, Slot

__all__ = [
    "Order",
    "agreement",
    "say_adverbial",
    "say_clause",
    "say_command",
    "say_infinitive",
    "say_nominal",
]

Order = Literal["second", "first", "last"]

_HABEN = verb_from_parts("haben hat hatte gehabt")
_SEIN = verb_from_parts("sein ist war gewesen s")
_WERDEN = verb_from_parts("werden wird wurde geworden s")
_MODALS = {
    Modal.CAN: (present_of("können"), preterite_of("konnte")),
    Modal.MUST: (present_of("müssen"), preterite_of("musste")),
    Modal.WANT: (present_of("wollen"), preterite_of("wollte")),
    Modal.MAY: (present_of("dürfen"), preterite_of("durfte")),
    Modal.SHOULD: (present_of("sollen"), preterite_of("sollte")),
    Modal.WOULD_LIKE: (present_of("möchten"), preterite_of("wollte")),
}
_PAST = frozenset({Tense.SPOKEN, Tense.TOLD, Tense.WAS_DOING, Tense.BEFORE})
_SIMPLE_PAST = frozenset({Tense.TOLD, Tense.WAS_DOING})
_PERFECT = frozenset({Tense.SPOKEN, Tense.DONE, Tense.BEFORE})
_DATIVE_OBJECT = Slot(preposition="", case=DAT, english="", tags=())


def agreement(nominal: Nominal) -> int:
    """Give the row of the conjugation table that a subject asks for."""
    if isinstance(nominal, Person):
        return PRONOUNS[nominal.pronoun].slot
    if isinstance(nominal, Pair):
        return 3 if isinstance(nominal.second, Person) and nominal.second.pronoun == "ich" else 5
    if isinstance(nominal, Phrase):
        return 5 if nominal.is_plural else 2
    if isinstance(nominal, Relative):
        return 5 if nominal.column == 3 else 2
    return 2


def say_nominal(nominal: Nominal, case: int, *, is_denied: bool = False) -> str:
    """Say a phrase, name or pronoun in a case; `is_denied` puts kein in the place of its article."""
    if isinstance(nominal, Phrase):
        return _say_phrase(nominal, case, is_denied=is_denied)
    if isinstance(nominal, Person):
        return PRONOUNS[nominal.pronoun].cases[case]
    if isinstance(nominal, Name):
        return _say_name(nominal, case)
    if isinstance(nominal, Pair):
        return f"{say_nominal(nominal.first, case)} und {say_nominal(nominal.second, case)}"
    if isinstance(nominal, Relative | Asked):
        return _say_marker(nominal, case)
    return _say_predicate(nominal)


def _say_marker(marker: Relative | Asked, case: int) -> str:
    if isinstance(marker, Relative):
        return RELATIVE[case][marker.column]
    return WER[case] if marker.is_person else "was"


def _say_name(name: Name, case: int) -> str:
    if case == GEN:
        return f"{name.text}s"
    if not name.title:
        return name.text
    title = "Frau" if name.title == "Mrs" else "Herr" if case == NOM else "Herrn"
    return f"{title} {name.text}"


def _say_predicate(nominal: Fixed | Role | Quality) -> str:
    if isinstance(nominal, Fixed):
        return nominal.german
    if isinstance(nominal, Role):
        return nominal.noun.german[0]
    adjective = nominal.adjective
    if nominal.standard:
        standard = say_nominal(nominal.standard, NOM)
        if nominal.degree:
            return f"{adjective.german[1]} als {standard}"
        return f"so {adjective.predicate} wie {standard}"
    word = adjective.predicate if not nominal.degree else adjective.german[nominal.degree]
    return f"{nominal.intensifier.german} {word}" if nominal.intensifier else word


def _say_phrase(phrase: Phrase, case: int, *, is_denied: bool) -> str:
    determiner = NO if is_denied and is_indefinite(phrase) else phrase.determiner
    column = phrase.column
    words = []
    owner = phrase.owner
    declension = determiner.declension
    if isinstance(owner, Name):
        words.append(say_nominal(owner, GEN))
        declension = "strong"
    elif article := determiner.table[case][column]:
        words.append(article)
    if phrase.count:
        words.append(german_cardinal(phrase.count))
    if phrase.adjectives:
        ending = ADJECTIVE_ENDINGS[declension][case][column]
        degree = phrase.degree
        words.extend(adjective.german[degree] + ending for adjective in phrase.adjectives)
    words.append(phrase.noun.german[case + 4 if phrase.is_plural else case])
    if isinstance(owner, Phrase):
        words.append(_say_phrase(owner, GEN, is_denied=False))
    text = " ".join(words)
    return f"{text}, {say_clause(phrase.relative, 'last')}," if phrase.relative else text


def _say_prepositional(preposition: str, case: int, nominal: Nominal) -> str:
    if isinstance(nominal, Asked) and not nominal.is_person:
        return wo_compound(preposition)
    text = say_nominal(nominal, case)
    if (
        isinstance(nominal, Phrase)
        and nominal.determiner.contracts
        and not nominal.relative
        and not isinstance(nominal.owner, Name)
    ):
        return join_preposition(preposition, text)
    return f"{preposition} {text}"


def say_adverbial(adverbial: Adverbial) -> str:
    """Say an adverb or a prepositional phrase."""
    if isinstance(adverbial, Adverb):
        return adverbial.german
    return _say_prepositional(adverbial.preposition, adverbial.case, adverbial.nominal)


def _verb_group(clause: Clause, row: int) -> tuple[str, str, bool]:
    """Return the finite verb, the words at the end, and whether those are a separable prefix."""
    verb = clause.verb.german
    tense = clause.tense
    if clause.modal:
        infinitive = f"{verb.participle} werden" if clause.is_passive else verb.infinitive
        return _MODALS[clause.modal][tense in _PAST][row], infinitive, False
    if clause.is_passive:
        return (_WERDEN.preterite if tense in _PAST else _WERDEN.present)[row], verb.participle, False
    if tense is Tense.FUTURE:
        return _WERDEN.present[row], verb.infinitive, False
    if tense in _SIMPLE_PAST or (tense is Tense.SPOKEN and "past" in clause.verb.flags):
        return verb.preterite[row], verb.prefix, True
    if tense in _PERFECT:
        auxiliary = _SEIN if verb.takes_sein else _HABEN
        forms = auxiliary.preterite if tense is Tense.BEFORE else auxiliary.present
        return forms[row], verb.participle, False
    return verb.present[row], verb.prefix, True


@dataclass(slots=True)
class _Field:
    """The constituents of one clause, sorted by where German puts them."""

    subject: Nominal
    moved: str = ""
    clitics: list[str] = field(default_factory=list)
    light: list[str] = field(default_factory=list)
    receivers: list[str] = field(default_factory=list)
    definite: list[str] = field(default_factory=list)
    indefinite: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)


def _sorted_field(clause: Clause) -> _Field:
    verb = clause.verb
    sorted_ = _Field(clause.subject)
    complements = list(zip(verb.slots, clause.complements, strict=False))
    if "swap" in verb.flags:
        sorted_.subject = clause.complements[0]
        complements = [(_DATIVE_OBJECT, clause.subject)]
    elif "there" in verb.flags:
        sorted_.subject = Person(pronoun="es")
    if verb.german.reflexive:
        sorted_.clitics.append(_reflexive_of(sorted_.subject))
    if is_moved(sorted_.subject):
        sorted_.moved = say_nominal(sorted_.subject, NOM)
    for slot, nominal in complements:
        _place(sorted_, slot, nominal, clause)
    for adverbial in clause.adverbials:
        if _is_moved_adjunct(adverbial):
            sorted_.moved = say_adverbial(adverbial)
    if clause.predicate:
        sorted_.ends.append(say_nominal(clause.predicate, NOM))
    sorted_.ends += _adverbials(clause, "goal")
    return sorted_


def _reflexive_of(subject: Nominal) -> str:
    if isinstance(subject, Person):
        return PRONOUNS[subject.pronoun].reflexive
    return "uns" if agreement(subject) == 3 else "sich"


def _place(sorted_: _Field, slot: Slot, nominal: Nominal, clause: Clause) -> None:
    if slot.preposition:
        text = _say_prepositional(slot.preposition, slot.case, nominal)
        target = sorted_.ends
    else:
        text = say_nominal(nominal, slot.case, is_denied=clause.is_negated and slot.case == ACC)
        target = _target(sorted_, slot, nominal, is_swapped="swap" in clause.verb.flags)
    if is_moved(nominal):
        sorted_.moved = text
    else:
        target.append(text)


def _target(sorted_: _Field, slot: Slot, nominal: Nominal, *, is_swapped: bool) -> list[str]:
    if isinstance(nominal, Person):
        return sorted_.clitics if is_swapped else sorted_.light
    if isinstance(nominal, Phrase) and not (nominal.determiner.is_definite or nominal.owner):
        return sorted_.receivers if slot.case == DAT else sorted_.indefinite
    return sorted_.light if slot.case == DAT else sorted_.definite


def _is_moved_adjunct(adverbial: Adverbial) -> bool:
    return not isinstance(adverbial, Adverb) and is_moved(adverbial.nominal)


def _adverbials(clause: Clause, *kinds: str) -> list[str]:
    return [
        say_adverbial(adverbial)
        for adverbial in clause.adverbials
        if adverbial.kind in kinds and not _is_moved_adjunct(adverbial)
    ]


def _middle(clause: Clause, sorted_: _Field) -> list[str]:
    """Order what stands between the finite verb and the words at the end, subject and clitics apart."""
    when = _adverbials(clause, "time", "often")
    tail = clause.verb.german_tail
    negation = ["nicht"] if clause.is_negated and not clause.denies_object else []
    if tail and clause.is_negated:
        tail, negation = clause.verb.german_denied, []
    is_denied = bool(negation)
    return [
        *sorted_.light,
        *(sorted_.definite + when if is_denied else when + sorted_.receivers + sorted_.definite),
        *_adverbials(clause, "already", "yet"),
        *negation,
        *_adverbials(clause, "manner"),
        *_adverbials(clause, "with"),
        *_adverbials(clause, "place"),
        *sorted_.indefinite,
        *([tail] if tail else []),
        *sorted_.ends,
    ]


def _subject_and_clitics(sorted_: _Field, subject: str) -> list[str]:
    if isinstance(sorted_.subject, Person):
        return [subject, *sorted_.clitics]
    return [*sorted_.clitics, subject]


def _closed(middle: list[str], verbs: list[str]) -> list[str]:
    """Close a clause with its last verbs; a relative clause right before them moves behind them."""
    if not (verbs and middle and middle[-1].endswith(",")):
        return middle + verbs
    noun, _, relative = middle[-1].partition(", ")
    return [*middle[:-1], noun, *verbs[:-1], f"{verbs[-1]}, {relative}"]


def say_clause(clause: Clause, order: Order, *, has_subject: bool = True) -> str:
    """Say a clause with its finite verb second, first or last; a shared subject may be left unsaid."""
    sorted_ = _sorted_field(clause)
    finite, end, is_prefix = _verb_group(clause, agreement(sorted_.subject))
    subject = say_nominal(sorted_.subject, NOM)
    is_subject_moved = is_moved(sorted_.subject)
    middle = _middle(clause, sorted_)
    closed = _closed(middle, [end] if end else [])
    if order == "last":
        verbs = [end + finite] if is_prefix else [end, finite]
        if is_subject_moved:
            return " ".join([subject, *sorted_.clitics, *_closed(middle, verbs)])
        lead = [sorted_.moved] if sorted_.moved else []
        return " ".join([*lead, *_subject_and_clitics(sorted_, subject), *_closed(middle, verbs)])
    lead_text = sorted_.moved or (say_adverbial(clause.front) if clause.front else "")
    if order == "second" and not lead_text:
        lead = [subject] if has_subject else []
        return " ".join([*lead, finite, *sorted_.clitics, *closed])
    if is_subject_moved:
        return " ".join([subject, finite, *sorted_.clitics, *closed])
    lead = [lead_text] if lead_text else []
    return " ".join([*lead, finite, *_subject_and_clitics(sorted_, subject), *closed])


def say_infinitive(clause: Clause) -> str:
    """Say a clause without its subject and with zu: das Buch zu lesen, früh aufzustehen."""
    sorted_ = _sorted_field(clause)
    return " ".join([*sorted_.clitics, *_middle(clause, sorted_), clause.verb.german.zu_infinitive])


def say_command(clause: Clause) -> str:
    """Tell du or ihr to do it: Öffne …, setzt euch …; the polite form is an ordinary clause with bitte in front."""
    sorted_ = _sorted_field(clause)
    verb = clause.verb.german
    is_plural = isinstance(clause.subject, Person) and clause.subject.pronoun == "ihr"
    finite = verb.present[4] if is_plural else verb.imperative
    words = [finite, *sorted_.clitics, *_middle(clause, sorted_), verb.prefix]
    return " ".join(word for word in words if word)
