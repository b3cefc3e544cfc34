"""Draws clauses: a verb with fitting subject and objects, a tense, and the time, place and manner that go with them."""

from dataclasses import dataclass
from functools import cache

from tandem.data.corpus.builtin.adverbs import (
    CLOCK,
    HABITS,
    LATER,
    MANNERS,
    NOW_ADVERBS,
    OFTEN,
    SPOKEN_PAST,
    TOLD_PAST,
)
from tandem.data.corpus.builtin.dice import Dice
from tandem.data.corpus.builtin.draw import (
    draw_object,
    draw_person,
    draw_place,
    is_spoken,
    places_tagged,
    pronoun_of,
)
from tandem.data.corpus.builtin.meaning import (
    EVERY,
    Adverbial,
    Clause,
    Modal,
    Nominal,
    Phrase,
    Tense,
)
from tandem.data.corpus.builtin.words import Adverb, Noun, Slot, Verb

__all__ = ["Setting", "complete", "draw_setting", "listed", "past_setting"]

_ALREADY = Adverb(german="schon", english="already", kind="already")
_YET = Adverb(german="noch", english="yet", kind="yet")
_BACK_THEN = TOLD_PAST[0]
_MODALS = (Modal.CAN, Modal.CAN, Modal.MUST, Modal.MUST, Modal.WANT, Modal.MAY, Modal.SHOULD, Modal.WOULD_LIKE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """When a clause happens, and whether it happens at all."""

    tense: Tense
    when: tuple[Adverb, ...] = ()
    modal: Modal | None = None
    is_negated: bool = False


def _can_deny(subject: Nominal) -> bool:
    return not isinstance(subject, Phrase) or (
        subject.determiner.is_definite and subject.determiner is not EVERY and not subject.count
    )


def draw_setting(dice: Dice, verb: Verb, subject: Nominal) -> Setting:
    """Draw a tense with the adverbs of time that it can have."""
    is_negated = _can_deny(subject) and dice.chance(0.14)
    luck = dice.below(100)
    if "state" in verb.flags:
        return _state_setting(dice, is_negated=is_negated)
    if luck < 20:
        when = (dice.pick(NOW_ADVERBS),) if dice.chance(0.35) else ()
        return Setting(tense=Tense.NOW, when=when, is_negated=is_negated)
    if luck < 38:
        if is_negated:
            return Setting(tense=Tense.HABIT, is_negated=True)
        return Setting(tense=Tense.HABIT, when=(dice.pick(HABITS if dice.chance(0.55) else OFTEN),))
    if luck < 66:
        return past_setting(dice, subject, is_negated=is_negated)
    if luck < 78:
        when = (dice.pick(LATER),) if dice.chance(0.8) else ()
        return Setting(tense=Tense.FUTURE, when=when, is_negated=is_negated)
    if luck < 84:
        return Setting(tense=Tense.DONE, when=(_YET if is_negated else _ALREADY,), is_negated=is_negated)
    if "animal" in getattr(getattr(subject, "noun", None), "tags", ()):
        return past_setting(dice, subject, is_negated=is_negated)
    return _modal_setting(dice, is_negated=is_negated)


def _state_setting(dice: Dice, *, is_negated: bool) -> Setting:
    if dice.chance(0.6):
        return Setting(tense=Tense.HABIT, is_negated=is_negated)
    return Setting(tense=Tense.TOLD, when=(_BACK_THEN,) if dice.chance(0.4) else (), is_negated=is_negated)


def past_setting(dice: Dice, subject: Nominal, *, is_negated: bool = False) -> Setting:
    """Draw a past, told or spoken."""
    if dice.chance(0.35):
        tense = Tense.SPOKEN if is_spoken(subject) else Tense.TOLD
        return Setting(tense=tense, is_negated=is_negated)
    if is_negated or dice.chance(0.65):
        return Setting(tense=Tense.SPOKEN, when=(dice.pick(SPOKEN_PAST),), is_negated=is_negated)
    return Setting(tense=Tense.TOLD, when=(dice.pick(TOLD_PAST),))


def _modal_setting(dice: Dice, *, is_negated: bool) -> Setting:
    modal = dice.pick(_MODALS)
    if modal is not Modal.WOULD_LIKE and dice.chance(0.3):
        when = (dice.pick(SPOKEN_PAST),) if dice.chance(0.4) else ()
        return Setting(tense=Tense.SPOKEN, when=when, modal=modal, is_negated=is_negated)
    when = (dice.pick(LATER),) if dice.chance(0.3) else ()
    return Setting(tense=Tense.HABIT, when=when, modal=modal, is_negated=is_negated)


def complete(
    dice: Dice, verb: Verb, subject: Nominal, setting: Setting, *, taken: tuple[Noun, ...] = ()
) -> Clause:
    """Give a verb with its subject all the objects and circumstances that it can have, other than `taken`."""
    if isinstance(subject, Phrase):
        taken = (*taken, subject.noun)
    actor = pronoun_of(subject)
    complements: list[Nominal] = []
    for slot in verb.slots:
        nominal = _draw_complement(dice, slot, actor=actor, taken=taken, is_negated=setting.is_negated)
        if isinstance(nominal, Phrase):
            taken = (*taken, nominal.noun)
        complements.append(nominal)
    return Clause(
        verb=verb,
        subject=subject,
        tense=setting.tense,
        complements=tuple(complements),
        modal=setting.modal,
        is_negated=setting.is_negated,
        adverbials=(
            *_settle(dice, verb, setting),
            *(_where_and_how(dice, verb, actor) if not setting.is_negated else ()),
        ),
    )


def _settle(dice: Dice, verb: Verb, setting: Setting) -> tuple[Adverb, ...]:
    when = setting.when
    is_bare = not verb.slots and "state" not in verb.flags and not setting.is_negated
    if is_bare and setting.tense in (Tense.HABIT, Tense.SPOKEN, Tense.FUTURE) and dice.chance(0.2):
        return (*when, dice.pick(CLOCK)) if all("ago" not in adverb.english for adverb in when) else when
    return when


def _draw_complement(
    dice: Dice, slot: Slot, *, actor: str, taken: tuple[Noun, ...], is_negated: bool
) -> Nominal:
    is_object = not slot.preposition and slot.case == 1
    if is_negated:
        mode = "plain" if is_object else "definite"
        return draw_object(dice, slot.tags, actor=actor, taken=taken, mode=mode)
    if "person" in slot.tags and len(slot.tags) == 1:
        return draw_person(dice, slot.tags, actor=actor, taken=taken)
    return draw_object(dice, slot.tags, actor=actor, taken=taken)


@cache
def listed(verb: Verb, flag: str) -> tuple[str, ...]:
    """Read a flag of the lexicon that carries a list: at=home,open."""
    for text in verb.flags:
        if text.startswith(flag):
            return tuple(text.removeprefix(flag).split(","))
    return ()


def _where_and_how(dice: Dice, verb: Verb, actor: str) -> tuple[Adverbial, ...]:
    places, manners = listed(verb, "at="), listed(verb, "how=")
    if places and dice.chance(0.45):
        return (draw_place(dice, dice.pick(places_tagged(places)), is_goal=False, actor=actor),)
    if manners and dice.chance(0.3):
        return (MANNERS[dice.pick(manners)],)
    return ()
