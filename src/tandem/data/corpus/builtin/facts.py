"""Sentences about how things are: qualities, comparisons, professions, prices, ages, places, what there is."""

from dataclasses import replace

from tandem.data.corpus.builtin.adjectives import MOODS, SUITED
from tandem.data.corpus.builtin.adverbs import INTENSIFIERS, SINCE, SPOKEN_PAST, YEARS
from tandem.data.corpus.builtin.circumstance import Setting, complete
from tandem.data.corpus.builtin.dice import Dice
from tandem.data.corpus.builtin.draw import (
    draw_city,
    draw_name,
    draw_object,
    draw_place,
    draw_subject,
    is_spoken,
    places_tagged,
    pool,
    pronoun_of,
)
from tandem.data.corpus.builtin.german import ACC, DAT
from tandem.data.corpus.builtin.meaning import (
    BARE,
    THE,
    THIS,
    A,
    Adjunct,
    Clause,
    Fixed,
    Modal,
    Nominal,
    Person,
    Phrase,
    Quality,
    Role,
    Tense,
    possessive,
)
from tandem.data.corpus.builtin.numerals import english_cardinal, german_cardinal, grouped
from tandem.data.corpus.builtin.verbs import (
    ACTIONS,
    BE,
    BECOME,
    COST,
    EXIST,
    HAVE,
    LAST_TIME,
    LIVE,
    PUTS,
    SITS,
)
from tandem.data.corpus.builtin.words import Adjective, Noun

__all__ = ["FACTS", "draw_mood"]

_DESCRIBED = tuple(
    noun for noun in pool(("ware", "text", "watched", "town", "dining", "food", "animal")) if SUITED[noun]
)
_COMPARED = (
    ("pet",),
    ("farm",),
    ("vehicle",),
    ("clothes",),
    ("tale",),
    ("watched",),
    ("device",),
    ("furniture",),
    ("fruit",),
)
_LANDMARKS = tuple(
    noun
    for noun in pool(("building", "sight", "dining", "shop"))
    if noun.tags.isdisjoint({"town", "room", "open"}) and SUITED[noun]
)
_URBAN = tuple(noun for noun in pool(("building", "dining", "shop", "urban")) if "room" not in noun.tags)
_JOBS = pool(("job",))
_LASTING = tuple(
    verb
    for verb in ACTIONS
    if verb.german.infinitive in {"arbeiten", "lernen"} or verb.german_tail in {"Klavier", "Gitarre", "Geige"}
)
_PRICES = (
    ("driven", 4000, 500, 70), ("ridden", 150, 50, 40), ("device", 40, 20, 60), ("furniture", 60, 20, 70),
    ("clothes", 15, 5, 50), ("instrument", 150, 50, 60), ("ware", 3, 1, 60),
)  # fmt: skip
_ON = (("auf", "on"), ("unter", "under"))
_BESIDE = (("neben", "next to"), ("hinter", "behind"), ("vor", "in front of"))
_ABOVE = (("über", "above"), ("neben", "next to"))


def draw_mood(dice: Dice) -> Quality:
    """Draw how somebody feels."""
    intensifier = dice.pick(INTENSIFIERS[:2]) if dice.chance(0.3) else None
    return Quality(adjective=dice.pick(MOODS), intensifier=intensifier)


def _present_or_past(dice: Dice) -> Tense:
    return Tense.HABIT if dice.chance(0.65) else Tense.TOLD


def _feeling(dice: Dice) -> Clause:
    subject = draw_subject(dice, ("person",), is_definite=True)
    tense = _present_or_past(dice)
    when = (dice.pick(SPOKEN_PAST),) if tense is Tense.TOLD and dice.chance(0.4) else ()
    return Clause(verb=BE, subject=subject, tense=tense, predicate=draw_mood(dice), adverbials=when)


def _description(dice: Dice) -> Clause:
    noun = dice.pick(_DESCRIBED)
    is_plural = not noun.is_mass and dice.chance(0.25)
    subject = Phrase(noun=noun, determiner=dice.pick((THE, THE, THIS)), is_plural=is_plural)
    suited = SUITED[noun]
    intensifier = dice.pick(INTENSIFIERS) if dice.chance(0.5) else None
    quality = Quality(adjective=dice.pick(suited), intensifier=intensifier)
    if not quality.adjective.is_graded:
        quality = replace(quality, intensifier=None)
    is_negated = quality.intensifier is None and dice.chance(0.2)
    return Clause(
        verb=BE, subject=subject, tense=_present_or_past(dice), predicate=quality, is_negated=is_negated
    )


def _comparison(dice: Dice) -> Clause:
    if dice.chance(0.35):
        return _people_compared(dice)
    tags = dice.pick(_COMPARED)
    first = replace(draw_object(dice, tags, actor="ich", taken=(), mode="definite"), adjectives=())
    second = draw_object(dice, tags, actor="ich", taken=(first.noun,), mode="definite")
    second = replace(second, adjectives=())
    shared = [a for a in SUITED[first.noun] if a in SUITED[second.noun] and a.is_graded]
    return _compared(dice, first, second, shared) if shared else _people_compared(dice)


def _people_compared(dice: Dice) -> Clause:
    first, second = draw_name(dice), draw_name(dice)
    while second == first:
        second = draw_name(dice)
    adjectives = [a for a in SUITED[pool(("adult",))[0]] if a.is_graded]
    return _compared(dice, first, second, adjectives)


def _compared(dice: Dice, first: Nominal, second: Nominal, adjectives: list[Adjective]) -> Clause:
    quality = Quality(adjective=dice.pick(adjectives), degree=1 if dice.chance(0.7) else 0, standard=second)
    is_negated = not quality.degree and dice.chance(0.4)
    tense = Tense.HABIT if dice.chance(0.8) else Tense.TOLD
    return Clause(verb=BE, subject=first, tense=tense, predicate=quality, is_negated=is_negated)


def _superlative(dice: Dice) -> Clause:
    is_building = dice.chance(0.6)
    noun = dice.pick(_LANDMARKS if is_building else pool(("clothes", "device", "furniture")))
    suited = [a for a in SUITED[noun] if a.is_graded]
    phrase = Phrase(noun=noun, determiner=THE, adjectives=(dice.pick(suited),), degree=2)
    towns = places_tagged(("town",) if is_building else ("retail",))
    where = draw_place(dice, dice.pick(towns), is_goal=False, actor="")
    subject = Fixed(german="das", english="that")
    text = replace(where, kind="goal")
    return Clause(
        verb=BE, subject=subject, tense=Tense.HABIT, complements=(), predicate=phrase, adverbials=(text,)
    )


def _profession(dice: Dice) -> Clause:
    subject = draw_name(dice) if dice.chance(0.5) else draw_object(dice, ("kin",), actor="ich", taken=())
    if isinstance(subject, Phrase) and subject.is_plural:
        subject = draw_name(dice)
    gender = 1 if pronoun_of(subject) == "sie" else 0
    job = dice.pick([noun for noun in _JOBS if noun.gender == gender])
    if dice.chance(0.35):
        return Clause(
            verb=BECOME, subject=subject, tense=Tense.HABIT, modal=Modal.WANT, predicate=Role(noun=job)
        )
    return Clause(verb=BE, subject=subject, tense=_present_or_past(dice), predicate=Role(noun=job))


def _price(dice: Dice) -> Clause:
    subject = draw_object(
        dice,
        ("clothes", "device", "furniture", "ridden", "driven", "instrument"),
        actor="",
        taken=(),
        mode="definite",
    )
    subject = replace(subject, is_plural=False, count=0)
    _, least, step, steps = next(row for row in _PRICES if row[0] in subject.noun.tags)
    german, english = grouped(least + step * dice.below(steps))
    amount = Fixed(german=f"{german} Euro", english=f"{english} euros")
    return Clause(verb=COST, subject=subject, tense=_present_or_past(dice), predicate=amount)


def _age(dice: Dice) -> Clause:
    noun = dice.pick(pool(("kin", "young", "friend")))
    least, span = (62, 33) if "elder" in noun.tags else (3, 15) if "young" in noun.tags else (22, 40)
    subject: Nominal = draw_name(dice, has_title=False)
    if dice.chance(0.6):
        subject = Phrase(noun=noun, determiner=possessive(dice.pick(("ich", "wir"))))
        if noun.tags.isdisjoint({"kin", "friend"}):
            subject = Phrase(noun=noun, determiner=THE)
    years = least + dice.below(span)
    age = Fixed(german=f"{german_cardinal(years)} Jahre alt", english=f"{english_cardinal(years)} years old")
    return Clause(verb=BE, subject=subject, tense=Tense.HABIT, predicate=age)


def _duration(dice: Dice) -> Clause:
    subject = draw_object(dice, ("event", "watched", "exam"), actor="", taken=(), mode="definite")
    subject = replace(subject, is_plural=False, count=0)
    number = 2 + dice.below(5)
    length = Fixed(german=f"{german_cardinal(number)} Stunden", english=f"{english_cardinal(number)} hours")
    if dice.chance(0.4):
        minutes = 20 + 5 * dice.below(15)
        length = Fixed(german=f"{minutes} Minuten", english=f"{minutes} minutes")
    return Clause(verb=LAST_TIME, subject=subject, tense=_present_or_past(dice), predicate=length)


def _population(dice: Dice) -> Clause:
    town = dice.pick(pool(("town",)))
    is_village = town.english[0] == "village"
    german, english = grouped(200 + 50 * dice.below(60) if is_village else 20_000 + 500 * dice.below(900))
    adjectives = (dice.pick(SUITED[town]),) if dice.chance(0.5) else ()
    return Clause(
        verb=HAVE,
        subject=Phrase(noun=town, determiner=dice.pick((THE, THIS)), adjectives=adjectives),
        tense=_present_or_past(dice),
        predicate=Fixed(german=f"{german} Einwohner", english=f"{english} inhabitants"),
    )


def _existence(dice: Dice) -> Clause:
    noun = dice.pick(_URBAN)
    is_plural = dice.chance(0.3)
    what = Phrase(
        noun=noun,
        determiner=BARE if is_plural else A,
        is_plural=is_plural,
        count=2 + dice.below(6) if is_plural else 0,
        adjectives=(dice.pick(SUITED[noun]),) if SUITED[noun] and dice.chance(0.4) else (),
    )
    where = draw_place(dice, dice.pick(places_tagged(("town",))), is_goal=False, actor="")
    is_first = dice.chance(0.4)
    return Clause(
        verb=EXIST,
        subject=Person(pronoun="es"),
        tense=_present_or_past(dice),
        complements=(what,),
        is_negated=not is_plural and dice.chance(0.2),
        adverbials=() if is_first else (where,),
        front=where if is_first else None,
    )


def _spot(dice: Dice, thing: Noun, *, case: int) -> Adjunct:
    if "hangs" in thing.tags:
        (german, english), near = dice.pick(_ABOVE), ("flat",)
    elif "small" in thing.tags and dice.chance(0.5):
        (german, english), near = ("in", "in"), ("packed",)
    elif dice.chance(0.65):
        (german, english), near = dice.pick(_ON), ("flat",)
    else:
        (german, english), near = dice.pick(_BESIDE), ("furniture",)
    landmark = draw_object(dice, near, actor="", taken=(thing,), mode="definite")
    landmark = replace(landmark, is_plural=False, count=0)
    return Adjunct(preposition=german, case=case, english=english, nominal=landmark, kind="goal")


def _position(dice: Dice) -> Clause:
    verb = dice.pick(SITS)
    subject = draw_object(dice, verb.subjects, actor="ich", taken=(), mode="definite")
    spot = _spot(dice, subject.noun, case=DAT)
    is_negated = dice.chance(0.15)
    return Clause(
        verb=verb, subject=subject, tense=_present_or_past(dice), is_negated=is_negated, adverbials=(spot,)
    )


def _placing(dice: Dice) -> Clause:
    verb = dice.pick(PUTS)
    subject = draw_subject(dice, verb.subjects)
    tense = dice.pick((Tense.NOW, Tense.SPOKEN if is_spoken(subject) else Tense.TOLD, Tense.FUTURE))
    thing = draw_object(dice, verb.slots[0].tags, actor=pronoun_of(subject), taken=(), mode="definite")
    return Clause(
        verb=verb, subject=subject, tense=tense, complements=(thing,),
        adverbials=(_spot(dice, thing.noun, case=ACC),),
    )  # fmt: skip


def _passive(dice: Dice) -> Clause:
    verb = dice.pick([verb for verb in ACTIONS if "passive" in verb.flags])
    subject = draw_object(dice, verb.slots[0].tags, actor="ich", taken=(), mode="definite")
    luck = dice.below(3)
    if luck == 0:
        return Clause(verb=verb, subject=subject, tense=Tense.NOW, is_passive=True)
    if luck == 1:
        modal = dice.pick((Modal.MUST, Modal.CAN))
        return Clause(verb=verb, subject=subject, tense=Tense.HABIT, modal=modal, is_passive=True)
    when = dice.pick(
        YEARS if "built" in subject.noun.tags or "building" in subject.noun.tags else SPOKEN_PAST
    )
    clause = Clause(verb=verb, subject=subject, tense=Tense.TOLD, is_passive=True)
    return replace(clause, front=when) if dice.chance(0.4) else replace(clause, adverbials=(when,))


def _living(dice: Dice) -> Clause:
    subject = draw_subject(dice, ("person",), is_definite=True)
    where = draw_city(dice, is_goal=False)
    if dice.chance(0.5):
        return Clause(verb=LIVE, subject=subject, tense=Tense.SINCE, adverbials=(dice.pick(SINCE), where))
    return Clause(verb=LIVE, subject=subject, tense=Tense.HABIT, adverbials=(where,))


def _lasting(dice: Dice) -> Clause:
    verb = dice.pick(_LASTING)
    subject = draw_subject(dice, verb.subjects, is_definite=True)
    clause = complete(dice, verb, subject, Setting(tense=Tense.SINCE, when=(dice.pick(SINCE),)))
    return replace(clause, adverbials=tuple(a for a in clause.adverbials if a.kind != "manner"))


FACTS = (
    _feeling, _description, _comparison, _comparison, _superlative, _profession, _price, _age, _duration, _population,
    _existence, _existence, _position, _position, _placing, _placing, _passive, _passive, _living, _lasting,
)  # fmt: skip
