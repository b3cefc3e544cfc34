"""Sentences of two clauses: because, although, if, when, while, after, that, whether, to, and, but."""

from dataclasses import replace

from tandem.data.corpus.builtin.adjectives import ADJECTIVES, MOODS
from tandem.data.corpus.builtin.circumstance import Setting, complete, draw_setting
from tandem.data.corpus.builtin.dice import Dice
from tandem.data.corpus.builtin.draw import (
    draw_name,
    draw_object,
    draw_place,
    draw_subject,
    is_spoken,
    places_tagged,
    pronoun_of,
)
from tandem.data.corpus.builtin.meaning import Clause, Modal, Nominal, Person, Phrase, Quality, Tense
from tandem.data.corpus.builtin.sentence import Complex, Conjunction, Joined, Pursuit, Sentence
from tandem.data.corpus.builtin.verbs import ACTIONS, BE, MOVES, PURSUITS, REPORTS, STATES, WEATHER, WONDERS
from tandem.data.corpus.builtin.words import Adverb, Noun, Verb

__all__ = ["COMPLEXES", "actions_named", "actions_with_tail"]


def actions_named(*infinitives: str) -> tuple[Verb, ...]:
    """List the actions with these German infinitives."""
    return tuple(verb for verb in ACTIONS if verb.german.infinitive in infinitives)


def actions_with_tail(*tails: str) -> tuple[Verb, ...]:
    """List the actions with these fixed German words."""
    return tuple(verb for verb in ACTIONS if verb.german_tail in tails)


_DOINGS = tuple(
    verb
    for verb in ACTIONS
    if "person" in verb.subjects and verb.flags.isdisjoint({"state", "sudden", "once", "unwilled"})
)
_RESTING = (*actions_named("ausruhen", "schlafen"), *actions_with_tail("zu Hause", "nach Hause"))
_EFFORTS = tuple(verb for verb in _DOINGS if verb not in _RESTING and "unwished" not in verb.flags)
_STARTED = tuple(
    verb
    for verb in _DOINGS
    if verb.german.infinitive
    in {
        "lesen",
        "schreiben",
        "putzen",
        "malen",
        "packen",
        "singen",
        "tanzen",
        "suchen",
        "lernen",
        "backen",
        "waschen",
    }
)
_BEFOREHAND = (
    *actions_named("frühstücken"),
    *(verb for verb in actions_with_tail("nach Hause") if verb.german.infinitive == "gehen"),
)
_ARRIVING = (
    *actions_named("ankommen", "zurückkommen"),
    *(verb for verb in actions_with_tail("nach Hause") if verb.german.infinitive == "kommen"),
)
_AFTERWARDS = (*_ARRIVING, *actions_named("aufstehen", "frühstücken"))
_LATER_DEEDS = tuple(
    verb for verb in _EFFORTS if verb.german.infinitive not in {"aufstehen", "frühstücken", "kommen", "gehen"}
)
_HAS_TIME = actions_with_tail("Zeit")[0]
_PRAISED = tuple(
    verb for verb in actions_named("kaufen", "lesen", "bestellen", "bewundern") if len(verb.slots) == 1
)
_PRAISE = frozenset(
    [
        "interessant",
        "spannend",
        "gut",
        "schön",
        "billig",
        "modern",
        "praktisch",
        "lustig",
        "frisch",
        "lecker",
        "bequem",
    ]
)
_GOOD = tuple(adjective for adjective in ADJECTIVES if adjective.predicate in _PRAISE)
_BURDENS = tuple(mood for mood in MOODS if mood.predicate in {"müde", "krank"})
_ERRANDS = (
    (("retail",), actions_named("kaufen")[:1], ("food", "drink", "produce")),
    (("town",), actions_named("kaufen")[:1], ("clothes", "gift", "instrument")),
    (("dining",), actions_named("essen"), ("menu",)),
    (("dining",), actions_named("trinken", "treffen"), ()),
    (("field",), (*actions_named("treffen", "ausruhen"), *actions_with_tail("Fußball")), ()),
)
_SAID_NOW = tuple(
    verb for verb in REPORTS if verb.german.infinitive in {"sagen", "glauben", "wissen", "hoffen"}
)
_SAID_THEN = tuple(verb for verb in REPORTS if verb.german.infinitive != "hoffen")
_JUST_THEN = Adverb(german="gerade", english="", kind="time")
_AND = Conjunction(german=" und", english=" and")
_BUT = Conjunction(german=", aber", english=", but")
_BECAUSE = Conjunction(german="weil", english="because")
_ALTHOUGH = Conjunction(german="obwohl", english="although")
_IF = Conjunction(german="wenn", english="if")
_WHEN = Conjunction(german="als", english="when")
_WHILE = Conjunction(german="während", english="while")
_AFTER = Conjunction(german="nachdem", english="after")
_BEFORE = Conjunction(german="bevor", english="before")
_THAT = Conjunction(german="dass", english="that")
_WHETHER = Conjunction(german="ob", english="whether")


def _past(subject: Nominal) -> Tense:
    return Tense.SPOKEN if is_spoken(subject) else Tense.TOLD


def _nouns(nominal: Nominal) -> tuple[Noun, ...]:
    return (nominal.noun,) if isinstance(nominal, Phrase) else ()


def _someone(dice: Dice) -> tuple[Nominal, Person]:
    """Draw somebody, and the pronoun that refers back."""
    while True:
        subject = draw_subject(dice, ("person",), is_definite=True)
        if pronoun := pronoun_of(subject):
            return subject, Person(pronoun=pronoun)


def _someone_else(dice: Dice, first: Nominal) -> Nominal:
    """Draw somebody who cannot be taken for the one just named."""
    other = draw_subject(dice, ("person",), is_definite=True)
    is_mistakable = isinstance(other, Person) or bool(set(_nouns(first)) & set(_nouns(other)))
    return draw_name(dice) if is_mistakable else other


def _ordered(
    dice: Dice, *, conjunction: Conjunction, main: Clause, subordinate: Clause, back: Person | None = None
) -> Complex:
    """Put either clause first; whoever both are about is named in the first and is `back` in the second."""
    is_first = dice.chance(0.35)
    if back and is_first:
        subordinate, main = replace(subordinate, subject=main.subject), replace(main, subject=back)
    return Complex(main=main, conjunction=conjunction, subordinate=subordinate, is_subordinate_first=is_first)


def _burden(dice: Dice, person: Nominal, tense: Tense) -> Clause:
    """Draw what keeps somebody from doing things."""
    if dice.chance(0.5):
        return Clause(verb=dice.pick(STATES), subject=person, tense=tense)
    return Clause(verb=BE, subject=person, tense=tense, predicate=Quality(adjective=dice.pick(_BURDENS)))


def _reason(dice: Dice) -> Sentence:
    subject, back = _someone(dice)
    tense = dice.pick((Tense.HABIT, Tense.SPOKEN))
    setting = Setting(tense=tense, modal=Modal.CAN, is_negated=True)
    main = complete(dice, dice.pick(_EFFORTS), subject, setting, is_known=True)
    burden = _burden(dice, back, tense)
    return _ordered(dice, conjunction=_BECAUSE, main=main, subordinate=burden, back=back)


def _praise(dice: Dice) -> Sentence:
    """Draw a reason that lies in the thing, whose German pronoun has the gender of its noun."""
    while True:
        verb = dice.pick(_PRAISED)
        subject = draw_subject(dice, verb.subjects, is_definite=True)
        main = complete(dice, verb, subject, Setting(tense=dice.pick((Tense.NOW, _past(subject)))))
        thing = main.complements[-1]
        good = [a for a in _GOOD if isinstance(thing, Phrase) and a.tags & thing.noun.tags]
        if good and isinstance(thing, Phrase) and "person" not in thing.noun.tags:
            break
    quality = Quality(adjective=dice.pick(good))
    tense = Tense.HABIT if main.tense is Tense.NOW else Tense.TOLD
    if isinstance(thing, Phrase):
        main = replace(main, complements=(replace(thing, adjectives=()),))
    it = Person(pronoun=pronoun_of(thing))
    return Complex(
        main=main,
        conjunction=_BECAUSE,
        subordinate=Clause(verb=BE, subject=it, tense=tense, predicate=quality),
    )


def _concession(dice: Dice) -> Sentence:
    subject, back = _someone(dice)
    is_past = dice.chance(0.5)
    setting = Setting(tense=_past(subject) if is_past else Tense.NOW)
    main = complete(dice, dice.pick(_DOINGS), subject, setting)
    if dice.chance(0.25):
        tense = Tense.WAS_DOING if is_past else Tense.NOW
        rain = Clause(verb=dice.pick(WEATHER), subject=Person(pronoun="es"), tense=tense)
        return _ordered(dice, conjunction=_ALTHOUGH, main=main, subordinate=rain)
    burden = _burden(dice, back, Tense.SPOKEN if is_past else Tense.HABIT)
    return _ordered(dice, conjunction=_ALTHOUGH, main=main, subordinate=burden, back=back)


def _condition(dice: Dice) -> Sentence:
    subject, back = _someone(dice)
    main = complete(dice, dice.pick(_EFFORTS), subject, Setting(tense=dice.pick((Tense.HABIT, Tense.FUTURE))))
    main = replace(main, adverbials=tuple(a for a in main.adverbials if a.kind != "time"))
    has_time = Clause(verb=_HAS_TIME, subject=back, tense=Tense.HABIT)
    return _ordered(dice, conjunction=_IF, main=main, subordinate=has_time, back=back)


def _meanwhile(dice: Dice) -> Sentence:
    first = draw_subject(dice, ("person",), is_definite=True)
    second = _someone_else(dice, first)
    tense = dice.pick((Tense.NOW, Tense.WAS_DOING))
    if dice.chance(0.4) or first == second:
        arrival = complete(dice, dice.pick(_ARRIVING), first, Setting(tense=Tense.TOLD))
        arrival = replace(arrival, adverbials=())
        activity = complete(
            dice, dice.pick(_EFFORTS), second, Setting(tense=Tense.WAS_DOING, when=(_JUST_THEN,))
        )
        return Complex(main=activity, conjunction=_WHEN, subordinate=arrival, is_subordinate_first=True)
    main = complete(dice, dice.pick(_DOINGS), first, Setting(tense=tense))
    other = complete(dice, dice.pick(_DOINGS), second, Setting(tense=tense))
    return _ordered(dice, conjunction=_WHILE, main=main, subordinate=other)


def _sequence(dice: Dice) -> Sentence:
    subject, back = _someone(dice)
    main = complete(dice, dice.pick(_LATER_DEEDS), subject, Setting(tense=Tense.TOLD))
    is_after = dice.chance(0.5)
    routine = dice.pick(_AFTERWARDS if is_after else _BEFOREHAND)
    earlier = Clause(verb=routine, subject=back, tense=Tense.BEFORE if is_after else Tense.TOLD)
    conjunction = _AFTER if is_after else _BEFORE
    return _ordered(dice, conjunction=conjunction, main=main, subordinate=earlier, back=back)


def _report(dice: Dice) -> Sentence:
    subject = draw_subject(dice, ("person",), is_definite=True)
    about = dice.pick(_DOINGS)
    other = _someone_else(dice, subject)
    if dice.chance(0.5):
        verb = dice.pick(_SAID_NOW)
        setting = draw_setting(dice, about, other)
        if verb.german.infinitive == "hoffen":
            setting = Setting(tense=Tense.FUTURE)
        main = Clause(verb=verb, subject=subject, tense=Tense.HABIT)
    else:
        setting = Setting(tense=Tense.BEFORE)
        main = Clause(verb=dice.pick(_SAID_THEN), subject=subject, tense=_past(subject))
    return Complex(
        main=main, conjunction=_THAT, subordinate=complete(dice, about, other, setting, taken=_nouns(subject))
    )


def _wonder(dice: Dice) -> Sentence:
    verb = dice.pick(WONDERS)
    subject = draw_subject(dice, ("person",), is_definite=True)
    about = dice.pick(_DOINGS)
    other = _someone_else(dice, subject)
    setting = draw_setting(dice, about, other)
    if setting.is_negated:
        setting = Setting(tense=Tense.NOW)
    is_negated = verb.german.infinitive == "wissen"
    main = Clause(verb=verb, subject=subject, tense=Tense.HABIT, is_negated=is_negated)
    clause = complete(dice, about, other, setting, taken=_nouns(subject))
    return Complex(main=main, conjunction=_WHETHER, subordinate=clause)


def _pursuit(dice: Dice) -> Sentence:
    verb = dice.pick(PURSUITS)
    subject = draw_subject(dice, verb.subjects)
    aims = _STARTED if verb.german.infinitive == "anfangen" else _EFFORTS
    aim = complete(dice, dice.pick(aims), subject, Setting(tense=Tense.NOW))
    aim = replace(aim, adverbials=tuple(a for a in aim.adverbials if a.kind != "time"))
    tense = _past(subject)
    if verb.german.infinitive in {"versuchen", "planen", "hoffen"} and dice.chance(0.5):
        tense = Tense.HABIT if "state" in verb.flags else Tense.NOW
    return Pursuit(main=Clause(verb=verb, subject=subject, tense=tense), aim=aim)


def _errand(dice: Dice) -> Sentence:
    subject = draw_subject(dice, ("adult",), is_definite=True)
    places, verbs, wanted = dice.pick(_ERRANDS)
    goal = draw_place(dice, dice.pick(places_tagged(places)), is_goal=True, actor="")
    tense = dice.pick((Tense.NOW, _past(subject), Tense.FUTURE))
    main = Clause(verb=MOVES[0], subject=subject, tense=tense, adverbials=(goal,))
    aim = replace(complete(dice, dice.pick(verbs), subject, Setting(tense=Tense.NOW)), adverbials=())
    if wanted:
        thing = draw_object(dice, wanted, actor=pronoun_of(subject), taken=(), mode="plain")
        aim = replace(aim, complements=(thing,))
    return Pursuit(main=main, aim=aim, opener="um ")


def _joined(dice: Dice) -> Sentence:
    first_verb = dice.pick(_EFFORTS)
    second_verb = dice.pick([verb for verb in _EFFORTS if verb is not first_verb])
    subject = draw_subject(dice, ("person",), is_definite=True)
    is_shared = dice.chance(0.6)
    tense = _past(subject) if is_shared else dice.pick((Tense.NOW, _past(subject)))
    first = complete(dice, first_verb, subject, Setting(tense=tense))
    other = _someone_else(dice, subject)
    if not is_shared and other != subject:
        second = complete(dice, second_verb, other, Setting(tense=tense))
        return Joined(first=first, conjunction=_AND if dice.chance(0.4) else _BUT, second=second)
    second = complete(dice, second_verb, subject, Setting(tense=_past(subject)))
    return Joined(
        first=replace(first, tense=_past(subject)), conjunction=_AND, second=second, shares_subject=True
    )


COMPLEXES = (
    _reason, _praise, _concession, _condition, _meanwhile, _sequence, _report, _report, _wonder, _pursuit, _errand,
    _joined, _joined,
)  # fmt: skip
