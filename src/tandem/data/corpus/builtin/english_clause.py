"""Says phrases and clauses in English: articles, agreement, do-support, and the order of words."""

from typing import NamedTuple

from tandem.data.corpus.builtin.english import PRONOUNS, indefinite_article, possessive_of
from tandem.data.corpus.builtin.meaning import (
    BARE,
    NO,
    A,
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
from tandem.data.corpus.builtin.numerals import english_cardinal
from tandem.data.corpus.builtin.words import Adverb, Slot

__all__ = ["say_adverbial", "say_clause", "say_gerund", "say_nominal", "say_verb_phrase"]

_PAST = frozenset({Tense.SPOKEN, Tense.TOLD, Tense.WAS_DOING, Tense.BEFORE})
_COMPOUND = frozenset({Tense.FUTURE, Tense.DONE, Tense.BEFORE, Tense.SINCE})
_ANIMATE = frozenset({"person", "animal"})


def say_nominal(nominal: Nominal, *, is_object: bool = False, is_denied: bool = False) -> str:
    """Say a phrase, name or pronoun; `is_denied` turns milk into any milk."""
    if isinstance(nominal, Phrase):
        return _say_phrase(nominal, is_denied=is_denied)
    if isinstance(nominal, Person):
        pronoun = PRONOUNS[nominal.pronoun]
        return pronoun.object if is_object else pronoun.subject
    if isinstance(nominal, Name):
        return f"{nominal.title} {nominal.text}" if nominal.title else nominal.text
    if isinstance(nominal, Pair):
        first = say_nominal(nominal.first, is_object=is_object)
        return f"{first} and {say_nominal(nominal.second, is_object=is_object)}"
    if isinstance(nominal, Relative | Asked):
        return _say_marker(nominal, is_object=is_object)
    return _say_predicate(nominal)


def _say_marker(marker: Relative | Asked, *, is_object: bool) -> str:
    if isinstance(marker, Asked):
        return "who" if marker.is_person else "what"
    return ("whom" if is_object else "who") if marker.is_person else "that"


def _say_predicate(nominal: Fixed | Role | Quality) -> str:
    if isinstance(nominal, Fixed):
        return nominal.english
    if isinstance(nominal, Role):
        noun = nominal.noun.english[0]
        return f"{indefinite_article(noun)} {noun}"
    plain = nominal.adjective.english[nominal.degree]
    if nominal.standard:
        standard = say_nominal(nominal.standard, is_object=False)
        return f"{plain} than {standard}" if nominal.degree else f"as {plain} as {standard}"
    return f"{nominal.intensifier.english} {plain}" if nominal.intensifier else plain


def _say_phrase(phrase: Phrase, *, is_denied: bool) -> str:
    noun = phrase.noun.english[phrase.is_plural]
    words = [adjective.english[phrase.degree] for adjective in phrase.adjectives]
    words.append(noun)
    if phrase.count:
        words.insert(0, english_cardinal(phrase.count))
    owner = phrase.owner
    of_owner = ""
    if owner and _is_animate(owner):
        words.insert(
            0, possessive_of(say_nominal(owner), is_plural=isinstance(owner, Phrase) and owner.is_plural)
        )
    else:
        article = _article(phrase, words[0], is_denied=is_denied)
        if article:
            words.insert(0, article)
        of_owner = f" of {say_nominal(owner)}" if owner else ""
    text = " ".join(words) + of_owner
    return f"{text} {say_clause(phrase.relative)}" if phrase.relative else text


def _is_animate(owner: Phrase | Name) -> bool:
    return isinstance(owner, Name) or bool(owner.noun.tags & _ANIMATE)


def _article(phrase: Phrase, following: str, *, is_denied: bool) -> str:
    determiner = phrase.determiner
    if determiner is A and not phrase.is_plural:
        return indefinite_article(following)
    if determiner is BARE and is_denied and is_indefinite(phrase):
        return "any"
    return determiner.english[phrase.is_plural]


def say_adverbial(adverbial: Adverbial) -> str:
    """Say an adverb or a prepositional phrase."""
    if isinstance(adverbial, Adverb):
        return adverbial.english
    return f"{adverbial.english} {say_nominal(adverbial.nominal, is_object=True)}"


class _Agreement(NamedTuple):
    is_first: bool
    is_plural: bool

    def pick(self, plural: str, singular: str) -> str:
        return plural if self.is_plural or self.is_first else singular

    @property
    def am(self) -> str:
        return "am" if self.is_first else "are" if self.is_plural else "is"

    @property
    def was(self) -> str:
        return "were" if self.is_plural else "was"


def _agreement(nominal: Nominal) -> _Agreement:
    if isinstance(nominal, Person):
        return _Agreement(nominal.pronoun == "ich", PRONOUNS[nominal.pronoun].plural)
    if isinstance(nominal, Phrase):
        return _Agreement(is_first=False, is_plural=nominal.is_plural)
    if isinstance(nominal, Relative):
        return _Agreement(is_first=False, is_plural=nominal.column == 3)
    return _Agreement(is_first=False, is_plural=isinstance(nominal, Pair))


class _Chain(NamedTuple):
    """An auxiliary and what follows it; without one, the finite verb, its base, and the `do` that it would need."""

    auxiliary: str
    main: str
    base: str = ""
    do: str = ""


def _chain(clause: Clause, agrees: _Agreement, *, needs_do: bool) -> _Chain:
    if clause.modal:
        return _modal_chain(clause, agrees, needs_do=needs_do)
    if clause.is_passive:
        being = "being " if clause.tense in (Tense.NOW, Tense.WAS_DOING) else ""
        be = agrees.was if clause.tense in _PAST else agrees.am
        return _Chain(be, being + clause.verb.english.participle)
    if clause.tense in _COMPOUND:
        return _compound_chain(clause, agrees)
    return _simple_chain(clause, agrees)


def _compound_chain(clause: Clause, agrees: _Agreement) -> _Chain:
    verb, flags = clause.verb.english, clause.verb.flags
    have = agrees.pick("have", "has")
    if clause.tense is Tense.FUTURE:
        return _Chain("will", verb.base)
    if clause.tense is Tense.BEFORE:
        return _Chain("had", verb.participle)
    if clause.tense is Tense.SINCE and ("state" not in flags or "skill" in flags):
        return _Chain(have, f"been {verb.ing}")
    return _Chain(have, verb.participle)


def _simple_chain(clause: Clause, agrees: _Agreement) -> _Chain:
    verb, tense = clause.verb.english, clause.tense
    if verb.base == "be":
        return _Chain(agrees.was if tense in _PAST else agrees.am, "")
    if "state" not in clause.verb.flags and tense in (Tense.NOW, Tense.WAS_DOING):
        return _Chain(agrees.am if tense is Tense.NOW else agrees.was, verb.ing)
    if tense in _PAST:
        return _Chain("", verb.past, verb.base, "did")
    return _Chain("", agrees.pick(verb.base, verb.third), verb.base, agrees.pick("do", "does"))


def _modal_chain(clause: Clause, agrees: _Agreement, *, needs_do: bool) -> _Chain:
    modal, is_past = clause.modal, clause.tense in _PAST
    base = clause.verb.english.base
    if clause.is_passive:
        base = f"be {clause.verb.english.participle}"
    if modal is Modal.WANT or (modal is Modal.MUST and (is_past or needs_do)):
        forms = ("want", "wants", "wanted") if modal is Modal.WANT else ("have", "has", "had")
        return _full_verb(clause, agrees, forms=forms, base=base)
    be = agrees.was if is_past else agrees.am
    if modal is Modal.MAY:
        return _Chain(be, f"allowed to {base}")
    if modal is Modal.SHOULD and is_past:
        return _Chain(be, f"supposed to {base}")
    if modal is Modal.WOULD_LIKE:
        return _Chain("would", f"like to {base}")
    word = {Modal.CAN: "could" if is_past else "can", Modal.MUST: "must", Modal.SHOULD: "should"}
    return _Chain(word[modal or Modal.CAN], base)


def _full_verb(clause: Clause, agrees: _Agreement, *, forms: tuple[str, str, str], base: str) -> _Chain:
    plain, third, past = (f"{form} to {base}" for form in forms)
    if clause.tense in _PAST:
        return _Chain("", past, plain, "did")
    return _Chain("", agrees.pick(plain, third), plain, agrees.pick("do", "does"))


def say_clause(clause: Clause, *, is_question: bool = False, has_subject: bool = True) -> str:
    """Say a clause; a question puts its auxiliary before the subject, unless the subject is asked for."""
    subject = clause.complements[0] if "there" in clause.verb.flags else clause.subject
    agrees = _agreement(subject)
    inverts = is_question and not is_moved(clause.subject)
    chain = _chain(clause, agrees, needs_do=inverts or clause.is_negated)
    auxiliary, main = chain.auxiliary, chain.main
    negation = ["not"] if clause.is_negated and "there" not in clause.verb.flags else []
    if not auxiliary and (inverts or negation):
        auxiliary, main = chain.do, chain.base
    if auxiliary == "can" and negation and not inverts:
        auxiliary, negation = "cannot", []
    said = "there" if "there" in clause.verb.flags else say_nominal(clause.subject)
    head = [auxiliary, said] if inverts else [said, auxiliary] if has_subject else [auxiliary]
    words = [
        *_lead(clause),
        *head,
        *negation,
        *_adverbials(clause, "often"),
        *_adverbials(clause, "already"),
        main,
    ]
    return " ".join(word for word in (*words, *_rest(clause)) if word)


def say_verb_phrase(clause: Clause) -> str:
    """Say a clause as a bare infinitive without its subject: read the book."""
    return " ".join([clause.verb.english.base, *_rest(clause)])


def say_gerund(clause: Clause) -> str:
    """Say a clause as an -ing form without its subject: reading books."""
    return " ".join([clause.verb.english.ing, *_rest(clause)])


def _lead(clause: Clause) -> list[str]:
    for nominal in clause.complements:
        if is_moved(nominal):
            return [say_nominal(nominal, is_object=True)]
    for adverbial in clause.adverbials:
        if not isinstance(adverbial, Adverb) and is_moved(adverbial.nominal):
            return [f"{adverbial.english} which"]
    return [say_adverbial(clause.front)] if clause.front else []


def _adverbials(clause: Clause, *kinds: str) -> list[str]:
    return [
        say_adverbial(adverbial)
        for adverbial in clause.adverbials
        if adverbial.kind in kinds and (isinstance(adverbial, Adverb) or not is_moved(adverbial.nominal))
    ]


def _rest(clause: Clause) -> list[str]:
    """Say all that follows the main verb."""
    verb = clause.verb
    words = _objects(clause)
    if verb.english.particle:
        is_pronoun = any(isinstance(nominal, Person) for nominal in clause.complements)
        words.insert(1 if is_pronoun else 0, verb.english.particle)
    if verb.english_tail:
        words.insert(0, verb.english_tail)
    if clause.predicate:
        words.append(say_nominal(clause.predicate))
    words += _adverbials(clause, "goal")
    words += _adverbials(clause, "manner", "with")
    words += _adverbials(clause, "place")
    words += _adverbials(clause, "yet")
    words += reversed(_adverbials(clause, "time"))
    return [word for word in words if word]


def _objects(clause: Clause) -> list[str]:
    """Say bare objects before prepositional ones; a preposition stays where its moved object was."""
    bare: list[str] = []
    prepositional: list[str] = []
    for slot, nominal in zip(clause.verb.slots, clause.complements, strict=False):
        target = prepositional if slot.english else bare
        if slot.english:
            target.append(slot.english)
        if not is_moved(nominal):
            target.append(_say_object(clause, slot, nominal))
    return bare + prepositional


def _say_object(clause: Clause, slot: Slot, nominal: Nominal) -> str:
    if "there" in clause.verb.flags and clause.is_negated and isinstance(nominal, Phrase):
        words = _say_phrase(nominal, is_denied=False)
        return f"{NO.english[0]} {words.removeprefix('an ').removeprefix('a ')}"
    return say_nominal(nominal, is_object=True, is_denied=clause.is_negated and not slot.preposition)
