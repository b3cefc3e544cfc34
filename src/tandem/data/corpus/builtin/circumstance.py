"""Draws clauses: a verb with fitting subject and objects, a tense, and the time, place and manner that go with them."""

from dataclasses import dataclass
from functools import cache

from tandem.data.corpus.builtin.adverbs import (
    CLOCK,
    DATES,
    FAR,
    HABITS,
    MANNERS,
    NOW_ADVERBS,
    OFTEN,
    SOON,
    SPOKEN_PAST,
    TOLD_PAST,
    YEARS,
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
from tandem.data.corpus.builtin.german import ACC
from tandem.data.corpus.builtin.german_clause import agreement
from tandem.data.corpus.builtin.meaning import (
    EVERY,
    Adverbial,
    Clause,
    Modal,
    Name,
    Nominal,
    Pair,
    Phrase,
    Tense,
)
from tandem.data.corpus.builtin.words import Adverb, Noun, Slot, Verb

__all__ = ["Setting", "complete", "draw_setting", "listed", "past_setting"]

_ALREADY = Adverb(german="schon", english="already", kind="already")
_YET = Adverb(german="noch", english="yet", kind="yet")
_BACK_THEN = TOLD_PAST[0]
_DATED = tuple(adverb for adverb in SOON if adverb.german != "bald")
_EATEN = frozenset({"food", "drink", "cut", "meal", "baked", "menu", "orchard", "raw", "feed"})
_MODALS = (
    Modal.CAN,
    Modal.CAN,
    Modal.MUST,
    Modal.MUST,
    Modal.WANT,
    Modal.MAY,
    Modal.SHOULD,
    Modal.WOULD_LIKE,
)


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
    flags = verb.flags
    is_negated = _can_deny(subject) and dice.chance(0.14)
    if "state" in flags and "sensed" not in flags:
        return _state_setting(dice, subject, is_negated=is_negated)
    luck = dice.below(100)
    if not flags.isdisjoint({"sensed", "sudden"}) or 38 <= luck < 66:
        return past_setting(dice, verb, subject, is_negated=is_negated)
    if luck < 38:
        return _present_setting(dice, verb, is_negated=is_negated, is_habit=luck >= 20)
    if "unwilled" in flags or _is_animal(subject):
        return past_setting(dice, verb, subject, is_negated=is_negated)
    if luck < 84 or "unwished" in flags:
        return _coming_setting(dice, verb, is_negated=is_negated, is_done=luck >= 78)
    return _modal_setting(dice, verb, is_negated=is_negated)


def _present_setting(dice: Dice, verb: Verb, *, is_negated: bool, is_habit: bool) -> Setting:
    if not is_habit or is_negated or "once" in verb.flags:
        when = (dice.pick(NOW_ADVERBS),) if dice.chance(0.35) else ()
        return Setting(tense=Tense.NOW, when=when, is_negated=is_negated)
    often = OFTEN if "unwilled" in verb.flags or dice.chance(0.45) else HABITS
    return Setting(tense=Tense.HABIT, when=(dice.pick(often),))


def _coming_setting(dice: Dice, verb: Verb, *, is_negated: bool, is_done: bool) -> Setting:
    if is_done:
        return Setting(tense=Tense.DONE, when=(_YET if is_negated else _ALREADY,), is_negated=is_negated)
    when = (dice.pick(_later(verb, is_negated=is_negated)),) if dice.chance(0.8) else ()
    return Setting(tense=Tense.FUTURE, when=when, is_negated=is_negated)


def _is_animal(subject: Nominal) -> bool:
    return isinstance(subject, Phrase) and "animal" in subject.noun.tags


def _later(verb: Verb, *, is_negated: bool) -> tuple[Adverb, ...]:
    if "once" in verb.flags or "cities" in verb.flags:
        return FAR
    return _DATED if is_negated else SOON


def _state_setting(dice: Dice, subject: Nominal, *, is_negated: bool) -> Setting:
    if dice.chance(0.6):
        return Setting(tense=Tense.HABIT, is_negated=is_negated)
    if dice.chance(0.4):
        return Setting(tense=Tense.TOLD, when=(_BACK_THEN,), is_negated=is_negated)
    return Setting(tense=Tense.SPOKEN if is_spoken(subject) else Tense.TOLD, is_negated=is_negated)


def past_setting(dice: Dice, verb: Verb, subject: Nominal, *, is_negated: bool = False) -> Setting:
    """Draw a past, told or spoken."""
    if "epoch" in verb.flags:
        return Setting(tense=Tense.TOLD, when=(dice.pick(YEARS),))
    if dice.chance(0.35):
        tense = Tense.SPOKEN if is_spoken(subject) else Tense.TOLD
        return Setting(tense=tense, is_negated=is_negated)
    if is_negated or dice.chance(0.65):
        return Setting(tense=Tense.SPOKEN, when=(dice.pick(SPOKEN_PAST),), is_negated=is_negated)
    is_dated = bool({"once", "cities"} & verb.flags) and dice.chance(0.7)
    return Setting(tense=Tense.TOLD, when=(dice.pick(DATES if is_dated else TOLD_PAST),))


def _modal_setting(dice: Dice, verb: Verb, *, is_negated: bool) -> Setting:
    modal = dice.pick(_MODALS)
    if modal is not Modal.WOULD_LIKE and dice.chance(0.3):
        when = (dice.pick(SPOKEN_PAST),) if dice.chance(0.4) else ()
        return Setting(tense=Tense.SPOKEN, when=when, modal=modal, is_negated=is_negated)
    is_planned = modal in (Modal.MUST, Modal.WANT, Modal.SHOULD, Modal.WOULD_LIKE) and dice.chance(0.4)
    when = (dice.pick(_later(verb, is_negated=True)),) if is_planned else ()
    return Setting(tense=Tense.HABIT, when=when, modal=modal, is_negated=is_negated)


def complete(
    dice: Dice,
    verb: Verb,
    subject: Nominal,
    setting: Setting,
    *,
    taken: tuple[Noun, ...] = (),
    is_known: bool = False,
) -> Clause:
    """Give a verb with its subject all the objects and circumstances that it can have, other than `taken`."""
    if isinstance(subject, Phrase):
        taken = (*taken, subject.noun)
    actor = pronoun_of(subject)
    owner = "" if "foreign" in verb.flags else actor
    # Two names side by side would not show in German who does it to whom.
    is_named = isinstance(subject, Name | Pair)
    complements: list[Nominal] = []
    for slot in verb.slots:
        nominal = _draw_complement(
            dice,
            slot,
            actor=owner,
            taken=taken,
            mode=_mode(verb, slot, setting, is_known=is_known, is_shared=agreement(subject) >= 3),
            may_name=not is_named,
        )
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
            *(
                _where_and_how(dice, verb, actor, is_habit=setting.tense is Tense.HABIT)
                if not setting.is_negated
                else ()
            ),
        ),
    )


def _settle(dice: Dice, verb: Verb, setting: Setting) -> tuple[Adverb, ...]:
    when = setting.when
    is_bare = not verb.slots and "state" not in verb.flags and not setting.is_negated
    if is_bare and setting.tense in (Tense.HABIT, Tense.SPOKEN, Tense.FUTURE) and dice.chance(0.2):
        return (*when, dice.pick(CLOCK)) if all("ago" not in adverb.english for adverb in when) else when
    return when


def _mode(verb: Verb, slot: Slot, setting: Setting, *, is_known: bool, is_shared: bool) -> str:
    is_object = not slot.preposition and slot.case == ACC
    if is_shared and "single" in verb.flags:
        return "each"
    if is_known or "known" in verb.flags or (setting.is_negated and not is_object):
        return "definite"
    for name in ("kinds", "single"):
        if name in verb.flags:
            return name
    if setting.is_negated:
        return "plain"
    if setting.tense is Tense.HABIT and not setting.modal and _EATEN.intersection(slot.tags):
        return "kinds"
    return "free" if is_object else "people"


def _draw_complement(
    dice: Dice, slot: Slot, *, actor: str, taken: tuple[Noun, ...], mode: str, may_name: bool
) -> Nominal:
    if mode in ("free", "people") and slot.tags == ("person",):
        return draw_person(
            dice, slot.tags, actor=actor, taken=taken, may_name=may_name or bool(slot.preposition)
        )
    return draw_object(dice, slot.tags, actor=actor, taken=taken, mode=mode)


@cache
def listed(verb: Verb, flag: str) -> tuple[str, ...]:
    """Read a flag of the lexicon that carries a list: at=home,open."""
    for text in verb.flags:
        if text.startswith(flag):
            return tuple(text.removeprefix(flag).split(","))
    return ()


def _where_and_how(dice: Dice, verb: Verb, actor: str, *, is_habit: bool) -> tuple[Adverbial, ...]:
    places, manners = listed(verb, "at="), listed(verb, "how=")
    if places and dice.chance(0.45):
        return (draw_place(dice, dice.pick(places_tagged(places)), is_goal=False, actor=actor),)
    if manners and not is_habit and dice.chance(0.3):
        return (MANNERS[dice.pick(manners)],)
    return ()
