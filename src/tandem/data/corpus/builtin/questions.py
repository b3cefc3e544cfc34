"""Questions and requests, and whom they address."""

from dataclasses import replace

from tandem.data.corpus.builtin.adverbs import SOON, WH
from tandem.data.corpus.builtin.circumstance import Setting, complete, listed
from tandem.data.corpus.builtin.dice import Dice
from tandem.data.corpus.builtin.draw import draw_name, draw_object, draw_pair, draw_subject, is_spoken, pool
from tandem.data.corpus.builtin.meaning import WHICH, Asked, Modal, Nominal, Person, Phrase, Tense
from tandem.data.corpus.builtin.sentence import Address, Command, Question
from tandem.data.corpus.builtin.verbs import ACTIONS, MOVES
from tandem.data.corpus.builtin.words import Adverb, Verb

__all__ = ["draw_address", "draw_question", "draw_request"]

_BITTE = Adverb(german="bitte", english="", kind="time")
_ASKABLE = tuple(verb for verb in ACTIONS if {"person", "adult"} & set(verb.subjects))
_WITH_OBJECT = tuple(
    verb
    for verb in _ASKABLE
    if verb.slots
    and "swap" not in verb.flags
    and len(pool(verb.slots[-1].tags)) > 2
    and "language" not in verb.slots[-1].tags
)
_SOMEWHERE = tuple(verb for verb in _ASKABLE if listed(verb, "at=") and "state" not in verb.flags)
_ASKED_FOR = frozenset(
    [
        "öffnen",
        "schließen",
        "reparieren",
        "putzen",
        "waschen",
        "bügeln",
        "lesen",
        "schreiben",
        "kaufen",
        "holen",
        "bringen",
        "suchen",
        "anrufen",
        "einladen",
        "abholen",
        "anmachen",
        "ausmachen",
        "unterschreiben",
        "übersetzen",
        "lösen",
        "beantworten",
        "schneiden",
        "bezahlen",
        "füttern",
        "packen",
        "gießen",
        "helfen",
        "antworten",
        "zuhören",
        "geben",
        "zeigen",
        "schicken",
        "erklären",
        "beschreiben",
        "vorlesen",
        "warten",
        "sich_beeilen",
        "aufstehen",
        "ausruhen",
        "setzen",
        "aufpassen",
        "kümmern",
        "probieren",
        "benutzen",
        "bestellen",
    ]
)
_REQUESTS = tuple(verb for verb in _ASKABLE if verb.german.infinitive in _ASKED_FOR)


def draw_address(dice: Dice) -> Address:
    """Draw who is spoken to: Anna (du), Anna and Paul (ihr), Mr Weber or nobody named (Sie)."""
    luck = dice.below(100)
    if luck < 40:
        return Address(pronoun="du", listener=draw_name(dice, has_title=False))
    if luck < 55:
        return Address(pronoun="ihr", listener=draw_pair(dice))
    return Address(pronoun="Sie", listener=draw_name(dice, has_title=True) if luck < 80 else None)


def _someone(dice: Dice, verb: Verb) -> tuple[Nominal, Address | None]:
    if dice.chance(0.6):
        address = draw_address(dice)
        return address.person, address
    subject = draw_subject(dice, verb.subjects, is_definite=True)
    return (Person(pronoun="er") if is_spoken(subject) and isinstance(subject, Person) else subject), None


def _setting(dice: Dice, verb: Verb, *, has_time: bool = True) -> Setting:
    if "state" in verb.flags:
        return Setting(tense=Tense.HABIT)
    if {"sudden", "unwilled"} & verb.flags:
        return Setting(tense=Tense.SPOKEN)
    luck = dice.below(100)
    if luck < 30:
        return Setting(tense=Tense.NOW)
    if luck < 65:
        return Setting(tense=Tense.SPOKEN)
    if luck < 85:
        modal = dice.pick((Modal.CAN, Modal.WANT, Modal.MUST, Modal.WOULD_LIKE))
        return Setting(tense=Tense.HABIT, modal=modal)
    return Setting(tense=Tense.FUTURE, when=(dice.pick(SOON),) if has_time else ())


def draw_question(dice: Dice) -> Question:
    """Draw a question, answered by yes or no or asked with a question word."""
    luck = dice.below(100)
    if luck < 40:
        return _yes_or_no(dice)
    if luck < 52:
        return _who(dice)
    if luck < 78:
        return _what(dice)
    return _where_or_when(dice)


def _yes_or_no(dice: Dice) -> Question:
    verb = dice.pick(_ASKABLE)
    subject, address = _someone(dice, verb)
    clause = complete(dice, verb, subject, _setting(dice, verb))
    return Question(clause=clause, address=address, has_word=False)


def _who(dice: Dice) -> Question:
    verb = dice.pick(_WITH_OBJECT)
    clause = complete(dice, verb, Asked(is_person=True), _setting(dice, verb))
    return Question(clause=clause, address=None, has_word=True)


def _what(dice: Dice) -> Question:
    verb = dice.pick(_WITH_OBJECT)
    subject, address = _someone(dice, verb)
    clause = complete(dice, verb, subject, _setting(dice, verb))
    at = len(verb.slots) - 1
    asked: Nominal = _asked(dice, verb, at)
    complements = (*clause.complements[:at], asked)
    return Question(clause=replace(clause, complements=complements), address=address, has_word=True)


def _asked(dice: Dice, verb: Verb, at: int) -> Nominal:
    slot = verb.slots[at]
    example = draw_object(dice, slot.tags, actor="", taken=())
    is_person = "person" in example.noun.tags
    if not slot.preposition and not is_person and not example.noun.is_mass and dice.chance(0.5):
        return Phrase(
            noun=example.noun, determiner=WHICH, is_plural=example.is_plural, adjectives=example.adjectives
        )
    return Asked(is_person=is_person)


def _where_or_when(dice: Dice) -> Question:
    luck = dice.below(4)
    verb = dice.pick((MOVES, _SOMEWHERE, _ASKABLE, _ASKABLE)[luck])
    word = ("wohin", "wo", "wann", "warum")[luck]
    subject, address = _someone(dice, verb)
    setting = _setting(dice, verb, has_time=word != "wann")
    if word == "wann":
        is_past = "sudden" in verb.flags or dice.chance(0.5)
        setting = Setting(tense=Tense.SPOKEN if is_past else Tense.FUTURE)
    clause = complete(dice, verb, subject, setting)
    kept = tuple(a for a in clause.adverbials if a.kind == "time" or luck > 1)
    clause = replace(clause, front=WH[word], adverbials=kept)
    return Question(clause=clause, address=address, has_word=True)


def draw_request(dice: Dice) -> Command:
    """Draw a polite request."""
    verb = dice.pick(_REQUESTS)
    address = draw_address(dice)
    clause = complete(dice, verb, address.person, Setting(tense=Tense.NOW), is_known=True)
    kept = tuple(a for a in clause.adverbials if a.kind in ("manner", "place"))
    if address.pronoun == "Sie":
        return Command(clause=replace(clause, adverbials=kept, front=_BITTE), address=address)
    return Command(clause=replace(clause, adverbials=(_BITTE, *kept)), address=address)
