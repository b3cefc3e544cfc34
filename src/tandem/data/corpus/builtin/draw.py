"""Draws phrases that make sense: nouns of the right class, with the articles and adjectives that suit them."""

from dataclasses import replace
from functools import cache

from tandem.data.corpus.builtin.adjectives import SUITED
from tandem.data.corpus.builtin.adverbs import CITIES, FEMALE_NAMES, MALE_NAMES, SURNAMES
from tandem.data.corpus.builtin.dice import Dice
from tandem.data.corpus.builtin.german import ACC, DAT
from tandem.data.corpus.builtin.meaning import (
    ALL,
    BARE,
    EVERY,
    FEW,
    MANY,
    SOME,
    THE,
    THIS,
    A,
    Adjunct,
    Determiner,
    Name,
    Nominal,
    Pair,
    Person,
    Phrase,
    possessive,
)
from tandem.data.corpus.builtin.nouns import PLACES, nouns_tagged
from tandem.data.corpus.builtin.words import Adjective, Adverb, Noun, Place

__all__ = [
    "draw_city", "draw_name", "draw_object", "draw_pair", "draw_person", "draw_phrase", "draw_place", "draw_subject",
    "is_spoken", "places_tagged", "pool", "pronoun_of",
]  # fmt: skip

_PEOPLE = frozenset({"person", "adult"})
_OWN = None  # stands for the possessive of whoever acts
_SUBJECT_ONE = (*(THE,) * 13, *(A,) * 3, *(THIS,) * 2, _OWN)
_SUBJECT_MANY = (*(THE,) * 9, *(THIS,) * 2, MANY, MANY, SOME, ALL, FEW)
_OBJECT_ONE = (*(THE,) * 8, *(A,) * 7, *(THIS,) * 2, *(_OWN,) * 3)
_OBJECT_MANY = (*(THE,) * 6, *(BARE,) * 5, *(THIS,) * 2, *(_OWN,) * 2, MANY, SOME, FEW, ALL)
_PLAIN_ONE = (*(THE,) * 5, *(A,) * 4, THIS, _OWN)
_PLAIN_MANY = (*(THE,) * 4, *(BARE,) * 4, THIS, _OWN)
_DEFINITE = (*(THE,) * 6, THIS, _OWN)
_MASS = (*(BARE,) * 6, *(THE,) * 4, THIS)
_OWNED = frozenset({"ware", "thing", "small", "kin", "friend", "pet", "owned", "clothes", "planned", "home"})
_SUBJECT_PRONOUNS = ("ich", "er", "sie", "wir", "sie alle")
_OWNERS = frozenset({"ich", "du", "er", "sie", "wir", "ihr", "sie alle", "Sie"})
_SINGLE = frozenset({"sole", "room", "building"})
_TRIES = 8  # a class may hold one noun alone
_SPOKEN = frozenset({"ich", "du", "wir", "ihr", "Sie"})


@cache
def pool(tags: tuple[str, ...]) -> tuple[Noun, ...]:
    """List the nouns of any of these classes."""
    return nouns_tagged(*tags)


@cache
def places_tagged(tags: tuple[str, ...]) -> tuple[Place, ...]:
    """List the places of any of these kinds."""
    return tuple(place for place in PLACES if place.noun.tags & frozenset(tags))


def is_spoken(subject: Nominal) -> bool:
    """Whether one tells it in speech, where German takes the perfect for the past."""
    return isinstance(subject, Name | Pair) or (isinstance(subject, Person) and subject.pronoun in _SPOKEN)


def pronoun_of(nominal: Nominal) -> str:
    """Name the pronoun that refers back to it, or nothing where the languages differ or waver."""
    if isinstance(nominal, Person | Name):
        return nominal.pronoun
    if isinstance(nominal, Pair):
        return "sie alle"
    if not isinstance(nominal, Phrase) or nominal.determiner is EVERY:
        return ""
    if nominal.is_plural:
        return "sie alle"
    if "person" in nominal.noun.tags:
        return ("er", "sie", "")[nominal.noun.gender]
    return "" if "animal" in nominal.noun.tags else ("er/it", "sie/it", "es")[nominal.noun.gender]


def draw_name(dice: Dice, *, has_title: bool | None = None) -> Name:
    """Draw a first name, or a surname with its title."""
    is_female = dice.chance(0.5)
    pronoun = "sie" if is_female else "er"
    if dice.chance(0.3) if has_title is None else has_title:
        return Name(text=dice.pick(SURNAMES), pronoun=pronoun, title="Mrs" if is_female else "Mr")
    return Name(text=dice.pick(FEMALE_NAMES if is_female else MALE_NAMES), pronoun=pronoun)


def draw_pair(dice: Dice) -> Pair:
    """Draw two first names, one of them a woman's."""
    return Pair(
        first=Name(text=dice.pick(FEMALE_NAMES), pronoun="sie"),
        second=Name(text=dice.pick(MALE_NAMES), pronoun="er"),
    )


def _draw_adjectives(dice: Dice, noun: Noun, chance: float = 0.4) -> tuple[Adjective, ...]:
    suited = SUITED[noun]
    if not suited or not dice.chance(chance):
        return ()
    return (dice.pick(suited),)


def draw_phrase(dice: Dice, noun: Noun, *, options: tuple[Determiner | None, ...], actor: str = "") -> Phrase:
    """Draw a singular phrase; `actor` is the pronoun of who may own it."""
    if noun.is_mass:
        return _draw_mass(dice, noun, is_definite=options is _DEFINITE)
    tags = noun.tags
    determiner = dice.pick(options)
    if "kin" in tags:
        determiner = _OWN
    if determiner is _OWN and (not tags & _OWNED or actor not in _OWNERS):
        if "kin" in tags:
            return _draw_kin(dice, noun)
        determiner = THE
    if determiner is THE and tags & _OWNED and dice.chance(0.08):
        return Phrase(noun=noun, determiner=THE, owner=_draw_owner(dice, noun))
    if determiner is _OWN:
        determiner = possessive(actor)
    return Phrase(noun=noun, determiner=determiner, adjectives=_draw_adjectives(dice, noun))


def _draw_kin(dice: Dice, noun: Noun) -> Phrase:
    if dice.chance(0.3):
        return Phrase(noun=noun, determiner=THE, owner=draw_name(dice, has_title=False))
    owner = possessive("ich" if dice.chance(0.7) else "wir")
    return Phrase(noun=noun, determiner=owner, adjectives=_draw_adjectives(dice, noun, 0.15))


def _draw_owner(dice: Dice, noun: Noun) -> Phrase | Name:
    if dice.chance(0.5):
        return draw_name(dice, has_title=False)
    people = [person for person in pool(("adult",)) if person is not noun]
    owner = dice.pick(people)
    return Phrase(noun=owner, determiner=THE, is_plural=dice.chance(0.15))


def _draw_mass(dice: Dice, noun: Noun, *, is_definite: bool) -> Phrase:
    if "language" in noun.tags:
        return Phrase(noun=noun, determiner=BARE)
    return Phrase(
        noun=noun,
        determiner=THE if is_definite else dice.pick(_MASS),
        adjectives=_draw_adjectives(dice, noun, 0.25),
    )


def _draw_many(dice: Dice, noun: Noun, *, options: tuple[Determiner | None, ...], actor: str) -> Phrase:
    determiner = dice.pick(options)
    if "paired" in noun.tags and determiner not in (THIS, _OWN):
        determiner = THE
    if determiner is _OWN or "kin" in noun.tags:
        determiner = possessive(actor if actor in _OWNERS else "ich") if noun.tags & _OWNED else THE
    count = 0
    if determiner in (THE, BARE) and "paired" not in noun.tags and dice.chance(0.3):
        count = 2 + dice.below(5 if "person" in noun.tags else 11)
    return Phrase(
        noun=noun, determiner=determiner, is_plural=True, count=count, adjectives=_draw_adjectives(dice, noun)
    )


def _may_be_many(dice: Dice, noun: Noun, chance: float) -> bool:
    if noun.is_mass or noun.tags & _SINGLE:
        return False
    return "paired" in noun.tags or dice.chance(chance)


def draw_subject(dice: Dice, tags: tuple[str, ...], *, is_definite: bool = False) -> Nominal:
    """Draw somebody or something that can do what takes such a subject."""
    if _PEOPLE.intersection(tags):
        luck = dice.below(100)
        if luck < 28:
            return Person(pronoun=dice.pick(_SUBJECT_PRONOUNS))
        if luck < 44:
            return draw_name(dice)
        if luck < 47:
            return draw_pair(dice)
    noun = dice.pick(pool(tags))
    if _may_be_many(dice, noun, 0.2):
        return _draw_many(dice, noun, options=_DEFINITE if is_definite else _SUBJECT_MANY, actor="ich")
    return draw_phrase(dice, noun, options=_DEFINITE if is_definite else _SUBJECT_ONE, actor="ich")


def draw_person(
    dice: Dice, tags: tuple[str, ...], *, actor: str, taken: tuple[Noun, ...], may_name: bool = True
) -> Nominal:
    """Draw somebody to whom something is done, other than the one who does it."""
    luck = dice.below(100)
    if luck < 14:
        others = [p for p in ("ich", "er", "sie", "wir", "sie alle") if _is_other(p, actor)]
        return Person(pronoun=dice.pick(others))
    if luck < 28 and may_name:
        return draw_name(dice)
    return draw_object(dice, tags, actor=actor, taken=taken, mode="people")


def _is_other(pronoun: str, actor: str) -> bool:
    first = ("ich", "wir")
    return pronoun != actor and not (pronoun in first and actor in first)


def draw_object(
    dice: Dice, tags: tuple[str, ...], *, actor: str, taken: tuple[Noun, ...], mode: str = "free"
) -> Phrase:
    """Draw a phrase of these classes; mode plain keeps to what kein can deny, definite to what is known,
    kinds to a kind of thing, single to one of them, each to one for each of several, people leaves out bare plurals.
    """
    noun = dice.pick(pool(tags))
    for _ in range(_TRIES):
        if noun not in taken:
            break
        noun = dice.pick(pool(tags))
    if mode == "each":
        return Phrase(noun=noun, determiner=possessive(actor) if actor else THE, is_plural=True)
    if mode == "kinds":
        return Phrase(
            noun=noun,
            determiner=BARE,
            is_plural=not noun.is_mass,
            adjectives=_draw_adjectives(dice, noun, 0.25),
        )
    one, many = {
        "free": (_OBJECT_ONE, _OBJECT_MANY),
        "plain": (_PLAIN_ONE, _PLAIN_MANY),
        "definite": (_DEFINITE, _DEFINITE),
        "people": (_OBJECT_ONE, _SUBJECT_MANY),
        "single": (_OBJECT_ONE, _DEFINITE),
    }[mode]
    if _may_be_many(dice, noun, 0.0 if mode == "single" else 0.25):
        phrase = _draw_many(dice, noun, options=many, actor=actor)
    else:
        phrase = draw_phrase(dice, noun, options=one, actor=actor)
    is_denied = mode == "plain" and not phrase.determiner.is_definite
    return replace(phrase, adjectives=(), count=0) if is_denied else phrase


def draw_place(dice: Dice, place: Place, *, is_goal: bool, actor: str) -> Adjunct:
    """Draw in the old park, or with `is_goal` into it."""
    noun = place.noun
    determiner = THE
    if noun.tags & frozenset({"owned", "home"}) and actor in _OWNERS and dice.chance(0.3):
        determiner = possessive(actor)
    elif dice.chance(0.05):
        determiner = THIS
    phrase = Phrase(noun=noun, determiner=determiner, adjectives=_draw_adjectives(dice, noun, 0.2))
    german, english = place.to if is_goal and place.to else place.at
    case = ACC if is_goal and german != "zu" else DAT
    return Adjunct(
        preposition=german, case=case, english=english, nominal=phrase, kind="goal" if is_goal else "place"
    )


def draw_city(dice: Dice, *, is_goal: bool) -> Adverb:
    """Draw in Vienna, or with `is_goal` to Vienna."""
    german, english = dice.pick(CITIES)
    if is_goal:
        return Adverb(german=f"nach {german}", english=f"to {english}", kind="goal")
    return Adverb(german=f"in {german}", english=f"in {english}", kind="goal")
