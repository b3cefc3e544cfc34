"""Hangs relative clauses on nouns: who does it, what is done to it, where one lives."""

from dataclasses import replace
from functools import cache

from tandem.data.corpus.builtin.adverbs import NOW_ADVERBS, SPOKEN_PAST
from tandem.data.corpus.builtin.circumstance import Setting, complete
from tandem.data.corpus.builtin.dice import Dice
from tandem.data.corpus.builtin.draw import draw_name, pool
from tandem.data.corpus.builtin.german import DAT
from tandem.data.corpus.builtin.meaning import (
    THE,
    Adjunct,
    Clause,
    Nominal,
    Person,
    Phrase,
    Relative,
    Tense,
    is_moved,
)
from tandem.data.corpus.builtin.nouns import PLACES
from tandem.data.corpus.builtin.verbs import ACTIONS, LIVE
from tandem.data.corpus.builtin.words import Noun, Place, Verb

__all__ = ["relate"]


def relate(dice: Dice, clause: Clause) -> Clause:
    """Now and then explain a noun of the clause by a relative clause."""
    luck = dice.below(100)
    if luck < 14:
        return (
            _explain_object(dice, clause)
            if clause.complements and clause.tense is not Tense.HABIT
            else clause
        )
    if luck < 22 and not is_moved(clause.subject):
        return replace(clause, subject=_explain(dice, clause.subject, besides=clause.verb))
    return clause


def _explain_object(dice: Dice, clause: Clause) -> Clause:
    """Explain the last object; what would follow it in English and seem part of the explanation goes to the front."""
    if any(slot.english for slot in clause.verb.slots[:-1]):
        return clause
    following = [adverbial for adverbial in clause.adverbials if adverbial.kind not in ("often", "already")]
    if len(following) > 1 or any(
        adverbial.kind != "time" or adverbial is NOW_ADVERBS[0] for adverbial in following
    ):
        return clause
    last = _explain(dice, clause.complements[-1], besides=clause.verb)
    if last is clause.complements[-1]:
        return clause
    rest = tuple(adverbial for adverbial in clause.adverbials if adverbial not in following)
    front = following[0] if following else None
    return replace(clause, complements=(*clause.complements[:-1], last), front=front, adverbials=rest)


def _explain(dice: Dice, nominal: Nominal, *, besides: Verb) -> Nominal:
    if not isinstance(nominal, Phrase) or nominal.owner or nominal.count or nominal.determiner is not THE:
        return nominal
    if nominal.noun.is_mass or "kin" in nominal.noun.tags:
        return nominal
    clause = _explanation(dice, nominal)
    if clause is None or clause.verb is besides:
        return nominal
    return replace(nominal, relative=clause)


def _explanation(dice: Dice, phrase: Phrase) -> Clause | None:
    noun = phrase.noun
    is_person = "person" in noun.tags
    marker = Relative(column=phrase.column, is_person=is_person)
    doing = _done_by(noun)
    if is_person and doing and dice.chance(0.6):
        verb = dice.pick(doing)
        return complete(dice, verb, marker, _setting(dice, verb), taken=(noun,))
    place = _place_of(noun)
    if place and place.at[0] == "in" and "dwelling" in noun.tags:
        return _living(dice, marker, place)
    done = _done_to(noun)
    return _deed(dice, marker, *dice.pick(done), noun=noun) if done else None


def _setting(dice: Dice, verb: Verb) -> Setting:
    if "state" in verb.flags and "sensed" not in verb.flags:
        return Setting(tense=Tense.HABIT)
    if not {"sudden", "sensed"} & verb.flags and dice.chance(0.35):
        return Setting(tense=Tense.NOW)
    return Setting(tense=Tense.SPOKEN, when=(dice.pick(SPOKEN_PAST),) if dice.chance(0.5) else ())


def _teller(dice: Dice) -> Nominal:
    return Person(pronoun=dice.pick(("ich", "wir"))) if dice.chance(0.5) else draw_name(dice)


def _deed(dice: Dice, marker: Relative, verb: Verb, at: int, *, noun: Noun) -> Clause:
    clause = complete(dice, verb, _teller(dice), _setting(dice, verb), taken=(noun,))
    complements = list(clause.complements)
    complements[at] = marker
    return replace(clause, complements=tuple(complements))


def _living(dice: Dice, marker: Relative, place: Place) -> Clause:
    where = Adjunct(preposition=place.at[0], case=DAT, english=place.at[1], nominal=marker, kind="place")
    tense = Tense.HABIT if dice.chance(0.6) else Tense.SPOKEN
    return Clause(verb=LIVE, subject=_teller(dice), tense=tense, adverbials=(where,))


@cache
def _place_of(noun: Noun) -> Place | None:
    return next((place for place in PLACES if place.noun is noun), None)


@cache
def _done_by(noun: Noun) -> tuple[Verb, ...]:
    return tuple(verb for verb in ACTIONS if noun in pool(verb.subjects) and "swap" not in verb.flags)


@cache
def _done_to(noun: Noun) -> tuple[tuple[Verb, int], ...]:
    """List the verbs, and which of their slots, that this noun can be the object of."""
    return tuple(
        (verb, at)
        for verb in ACTIONS
        for at, slot in enumerate(verb.slots)
        if noun in pool(slot.tags) and "person" in verb.subjects
    )
