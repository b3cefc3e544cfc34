"""Whole sentences: each kind holds one meaning and says it in English and in German."""

from dataclasses import dataclass
from typing import Protocol

from tandem.data.corpus.builtin import english_clause as en
from tandem.data.corpus.builtin import german_clause as de
from tandem.data.corpus.builtin.meaning import Clause, Name, Pair, Person

__all__ = [
    "Address",
    "Command",
    "Complex",
    "Conjunction",
    "Joined",
    "Liking",
    "Pursuit",
    "Question",
    "Sentence",
    "Statement",
]


class Sentence(Protocol):
    """One meaning that can be said in both languages."""

    def english(self) -> str:
        """Say it in English."""

    def german(self) -> str:
        """Say it in German."""

    def clauses(self) -> tuple[Clause, ...]:
        """List the clauses that it is made of."""


def _finish(text: str, mark: str) -> str:
    """Capitalise and end a sentence; a comma that closes a relative clause yields to any other mark."""
    return (text[0].upper() + text[1:] + mark).replace(",,", ",").replace("," + mark, mark)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conjunction:
    """A word that joins clauses, with the comma that its language wants before it."""

    german: str
    english: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Who is spoken to, which decides between du, ihr and Sie; without a listener it is Sie."""

    pronoun: str
    listener: Name | Pair | None

    @property
    def person(self) -> Person:
        """The pronoun as a subject."""
        return Person(pronoun=self.pronoun)

    def english(self) -> str:
        """Say the listener after a comma."""
        return f", {en.say_nominal(self.listener)}" if self.listener else ""

    def german(self) -> str:
        """Say the listener after a comma."""
        return f", {de.say_nominal(self.listener, 0)}" if self.listener else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One main clause, with yes or no before it where it answers."""

    clause: Clause
    answer: Conjunction | None = None

    def english(self) -> str:
        """Say it in English."""
        text = en.say_clause(self.clause)
        return _finish(f"{self.answer.english}, {text}" if self.answer else text, ".")

    def german(self) -> str:
        """Say it in German."""
        text = de.say_clause(self.clause, "second")
        return _finish(f"{self.answer.german}, {text}" if self.answer else text, ".")

    def clauses(self) -> tuple[Clause, ...]:
        """List the clause."""
        return (self.clause,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question; with a question word its clause holds something asked for, or has the word in front."""

    clause: Clause
    address: Address | None
    has_word: bool

    def english(self) -> str:
        """Say it in English."""
        listener = self.address.english() if self.address else ""
        return _finish(en.say_clause(self.clause, is_question=True) + listener, "?")

    def german(self) -> str:
        """Say it in German."""
        listener = self.address.german() if self.address else ""
        return _finish(de.say_clause(self.clause, "second" if self.has_word else "first") + listener, "?")

    def clauses(self) -> tuple[Clause, ...]:
        """List the clause."""
        return (self.clause,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A polite request."""

    clause: Clause
    address: Address

    def english(self) -> str:
        """Say it in English."""
        return _finish(f"please {en.say_verb_phrase(self.clause)}{self.address.english()}", ".")

    def german(self) -> str:
        """Say it in German."""
        is_polite = self.address.pronoun == "Sie"
        text = de.say_clause(self.clause, "first") if is_polite else de.say_command(self.clause)
        return _finish(text + self.address.german(), ".")

    def clauses(self) -> tuple[Clause, ...]:
        """List the clause."""
        return (self.clause,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Two main clauses side by side; they may share the subject, which is then said once."""

    first: Clause
    conjunction: Conjunction
    second: Clause
    shares_subject: bool = False

    def english(self) -> str:
        """Say it in English."""
        second = en.say_clause(self.second, has_subject=not self.shares_subject)
        return _finish(f"{en.say_clause(self.first)}{self.conjunction.english} {second}", ".")

    def german(self) -> str:
        """Say it in German."""
        second = de.say_clause(self.second, "second", has_subject=not self.shares_subject)
        return _finish(f"{de.say_clause(self.first, 'second')}{self.conjunction.german} {second}", ".")

    def clauses(self) -> tuple[Clause, ...]:
        """List both clauses."""
        return (self.first, self.second)


@dataclass(frozen=True, slots=True, kw_only=True)
class Complex:
    """A main clause with a subordinate one, whose German verb comes last; it may stand first."""

    main: Clause
    conjunction: Conjunction
    subordinate: Clause
    is_subordinate_first: bool = False

    def english(self) -> str:
        """Say it in English."""
        main, subordinate = en.say_clause(self.main), en.say_clause(self.subordinate)
        word = self.conjunction.english
        if self.is_subordinate_first:
            return _finish(f"{word} {subordinate}, {main}", ".")
        return _finish(f"{main} {word} {subordinate}", ".")

    def german(self) -> str:
        """Say it in German."""
        subordinate = f"{self.conjunction.german} {de.say_clause(self.subordinate, 'last')}"
        if self.is_subordinate_first:
            return _finish(f"{subordinate}, {de.say_clause(self.main, 'first')}", ".")
        return _finish(f"{de.say_clause(self.main, 'second')}, {subordinate}", ".")

    def clauses(self) -> tuple[Clause, ...]:
        """List both clauses."""
        return (self.main, self.subordinate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pursuit:
    """A main clause with an infinitive: tries to …, or with um … zu what it is done for."""

    main: Clause
    aim: Clause
    opener: str = ""

    def english(self) -> str:
        """Say it in English."""
        return _finish(f"{en.say_clause(self.main)} to {en.say_verb_phrase(self.aim)}", ".")

    def german(self) -> str:
        """Say it in German."""
        aim = de.say_infinitive(self.aim)
        return _finish(f"{de.say_clause(self.main, 'second')}, {self.opener}{aim}", ".")

    def clauses(self) -> tuple[Clause, ...]:
        """List both clauses."""
        return (self.main, self.aim)


@dataclass(frozen=True, slots=True, kw_only=True)
class Liking:
    """What somebody likes doing; `clause` holds gern among its adverbials."""

    clause: Clause
    likes: Clause

    def english(self) -> str:
        """Say it in English."""
        return _finish(f"{en.say_clause(self.likes)} {en.say_gerund(self.clause)}", ".")

    def german(self) -> str:
        """Say it in German."""
        return _finish(de.say_clause(self.clause, "second"), ".")

    def clauses(self) -> tuple[Clause, ...]:
        """List the clause; liking itself is no word of the German."""
        return (self.clause,)
