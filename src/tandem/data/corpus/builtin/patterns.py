"""The kinds of sentence, and how often each is drawn."""

from collections.abc import Callable
from dataclasses import replace

from tandem.data.corpus.builtin.adverbs import OPENERS, VEHICLES
from tandem.data.corpus.builtin.circumstance import Setting, complete, draw_setting
from tandem.data.corpus.builtin.complexes import COMPLEXES, actions_named, actions_with_tail
from tandem.data.corpus.builtin.dice import Dice
from tandem.data.corpus.builtin.draw import draw_city, draw_place, draw_subject, pool, pronoun_of
from tandem.data.corpus.builtin.facts import FACTS
from tandem.data.corpus.builtin.meaning import BARE, THE, Adverbial, Clause, Phrase, Tense
from tandem.data.corpus.builtin.nouns import PLACES
from tandem.data.corpus.builtin.questions import draw_question, draw_request
from tandem.data.corpus.builtin.relative import relate
from tandem.data.corpus.builtin.sentence import Conjunction, Liking, Sentence, Statement
from tandem.data.corpus.builtin.verbs import ACTIONS, GO_BY, LIKE_DOING, MOVES
from tandem.data.corpus.builtin.words import Adverb, Verb

__all__ = ["draw_sentence"]

_HOBBIES = (
    *actions_named("tanzen", "singen", "fernsehen", "schwimmen", "lesen", "malen", "sammeln", "trinken"),
    *actions_with_tail("Klavier", "Gitarre", "Geige", "Fußball", "Karten"),
)
_DISTANT = tuple(place for place in PLACES if place.to and place.to[1] == "to")
_NEAR = tuple(place for place in PLACES if place.to)
_GERN = Adverb(german="gern", english="", kind="often")
_YES, _NO = Conjunction(german="ja", english="yes"), Conjunction(german="nein", english="no")


def _with_front(dice: Dice, clause: Clause) -> Clause:
    """Now and then begin with the time, or with an adverb about the whole clause."""
    if clause.front:
        return clause
    times = [adverbial for adverbial in clause.adverbials if adverbial.kind == "time"]
    first = times[0] if times else None
    if first and isinstance(first, Adverb) and first.german != "gerade" and dice.chance(0.45):
        rest = tuple(adverbial for adverbial in clause.adverbials if adverbial is not first)
        return replace(clause, front=first, adverbials=rest)
    if not times and clause.tense is not Tense.HABIT and dice.chance(0.08):
        return replace(clause, front=OPENERS[0] if clause.is_negated else dice.pick(OPENERS[1:]))
    return clause


def _statement(dice: Dice) -> Sentence:
    verb = dice.pick(ACTIONS)
    subject = draw_subject(dice, verb.subjects)
    clause = relate(dice, complete(dice, verb, subject, draw_setting(dice, verb, subject)))
    if dice.chance(0.04):
        return Statement(clause=clause, answer=_NO if clause.is_negated else _YES)
    return Statement(clause=_with_front(dice, clause))


def _travel(dice: Dice) -> Sentence:
    verb = GO_BY if dice.chance(0.3) else dice.pick(MOVES)
    subject = draw_subject(dice, verb.subjects)
    clause = complete(dice, verb, subject, draw_setting(dice, verb, subject))
    goal = _draw_goal(dice, verb, pronoun_of(subject))
    vehicles = VEHICLES[:3] if isinstance(goal, Adverb) else VEHICLES[1:]
    means = (dice.pick(vehicles),) if verb is GO_BY else ()
    return Statement(clause=_with_front(dice, replace(clause, adverbials=(*clause.adverbials, *means, goal))))


def _draw_goal(dice: Dice, verb: Verb, actor: str) -> Adverbial:
    if "cities" in verb.flags and not ("places" in verb.flags and dice.chance(0.4)):
        return draw_city(dice, is_goal=True)
    places = _NEAR if verb is MOVES[0] or verb is MOVES[1] else _DISTANT
    return draw_place(dice, dice.pick(places), is_goal=True, actor=actor)


def _liking(dice: Dice) -> Sentence:
    verb = dice.pick(_HOBBIES)
    subject = draw_subject(dice, verb.subjects)
    if isinstance(subject, Phrase) and not subject.determiner.is_definite:
        subject = replace(subject, determiner=THE)
    nouns = [dice.pick(pool(slot.tags)) for slot in verb.slots]
    objects = tuple(Phrase(noun=noun, determiner=BARE, is_plural=not noun.is_mass) for noun in nouns)
    clause = complete(dice, verb, subject, Setting(tense=Tense.HABIT))
    places = tuple(adverbial for adverbial in clause.adverbials if adverbial.kind == "place")
    return Liking(
        clause=replace(clause, complements=objects, adverbials=(_GERN, *places)),
        likes=Clause(verb=LIKE_DOING, subject=subject, tense=Tense.HABIT),
    )


def _fact(dice: Dice) -> Sentence:
    return Statement(clause=dice.pick(FACTS)(dice))


def _complex(dice: Dice) -> Sentence:
    return dice.pick(COMPLEXES)(dice)


_KINDS: tuple[Callable[[Dice], Sentence], ...] = (
    *(_statement,) * 32, *(_travel,) * 6, *(_fact,) * 14, *(draw_question,) * 14, *(draw_request,) * 4,
    *(_liking,) * 2, *(_complex,) * 28,
)  # fmt: skip


def draw_sentence(dice: Dice) -> Sentence:
    """Draw one meaning."""
    return dice.pick(_KINDS)(dice)
