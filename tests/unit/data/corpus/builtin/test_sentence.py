"""Chosen meanings, said in both languages."""

import pytest

from tandem.data.corpus.builtin.adjectives import ADJECTIVES
from tandem.data.corpus.builtin.german import ACC, DAT
from tandem.data.corpus.builtin.meaning import (
    BARE,
    THE,
    A,
    Adjunct,
    Asked,
    Clause,
    Modal,
    Name,
    Person,
    Phrase,
    Quality,
    Relative,
    Role,
    Tense,
    possessive,
)
from tandem.data.corpus.builtin.nouns import NOUNS
from tandem.data.corpus.builtin.sentence import (
    Address,
    Command,
    Complex,
    Conjunction,
    Joined,
    Pursuit,
    Question,
    Sentence,
    Statement,
)
from tandem.data.corpus.builtin.verbs import BE, BECOME, EXIST, MOVES, PURSUITS, SITS, VERBS
from tandem.data.corpus.builtin.words import Adjective, Adverb, Noun, Verb


def noun(english: str) -> Noun:
    return next(entry for entry in NOUNS if entry.english[0] == english)


def verb(german: str, english: str, slots: int | None = None) -> Verb:
    return next(
        entry
        for entry in VERBS
        if entry.german.infinitive == german
        and entry.english.base == english
        and (slots is None or len(entry.slots) == slots)
    )


def adjective(english: str) -> Adjective:
    return next(entry for entry in ADJECTIVES if entry.english[0] == english)


def the(english: str, *adjectives: str, plural: bool = False) -> Phrase:
    return Phrase(
        noun=noun(english), determiner=THE, is_plural=plural, adjectives=tuple(map(adjective, adjectives))
    )


def a(english: str, *adjectives: str) -> Phrase:
    return Phrase(noun=noun(english), determiner=A, adjectives=tuple(map(adjective, adjectives)))


ANNA = Name(text="Anna", pronoun="sie")
WEBER = Name(text="Weber", pronoun="er", title="Mr")
ICH, DU, SIE = Person(pronoun="ich"), Person(pronoun="du"), Person(pronoun="Sie")
YESTERDAY = Adverb(german="gestern", english="yesterday", kind="time")
READ = verb("lesen", "read")
INTO_FOREST = Adjunct(preposition="in", case=ACC, english="into", nominal=the("forest", "quiet"), kind="goal")
IN_VILLAGE = Adjunct(preposition="in", case=DAT, english="in", nominal=the("village"), kind="place")
BECAUSE = Conjunction(german="weil", english="because")
THAT = Conjunction(german="dass", english="that")

STATEMENTS = [
    (
        Clause(verb=READ, subject=the("woman", "old"), tense=Tense.SPOKEN, complements=(a("book", "new"),),
               front=YESTERDAY),
        "Yesterday the old woman read a new book.",
        "Gestern hat die alte Frau ein neues Buch gelesen.",
    ),
    (
        Clause(verb=READ, subject=the("man"), tense=Tense.NOW, complements=(a("letter"),), is_negated=True),
        "The man is not reading a letter.",
        "Der Mann liest keinen Brief.",
    ),
    (
        Clause(verb=READ, subject=the("man"), tense=Tense.SPOKEN, complements=(the("letter"),), is_negated=True,
               adverbials=(YESTERDAY,)),
        "The man did not read the letter yesterday.",
        "Der Mann hat den Brief gestern nicht gelesen.",
    ),
    (
        Clause(verb=verb("aufstehen", "get"), subject=ANNA, tense=Tense.HABIT,
               adverbials=(Adverb(german="oft", english="often", kind="often"),)),
        "Anna often gets up.",
        "Anna steht oft auf.",
    ),
    (
        Clause(verb=verb("aufstehen", "get"), subject=ICH, tense=Tense.SPOKEN),
        "I got up.",
        "Ich bin aufgestanden.",
    ),
    (
        Clause(verb=verb("geben", "give"), subject=the("teacher"), tense=Tense.FUTURE,
               complements=(the("student", "young"), a("book"))),
        "The teacher will give the young student a book.",
        "Der Lehrer wird dem jungen Studenten ein Buch geben.",
    ),
    (
        Clause(verb=verb("helfen", "help"), subject=Person(pronoun="wir"), tense=Tense.HABIT, modal=Modal.MUST,
               complements=(WEBER,)),
        "We must help Mr Weber.",
        "Wir müssen Herrn Weber helfen.",
    ),
    (
        Clause(verb=verb("helfen", "help"), subject=the("child"), tense=Tense.HABIT, modal=Modal.MUST,
               is_negated=True, complements=(the("friend", plural=True),)),
        "The child does not have to help the friends.",
        "Das Kind muss den Freunden nicht helfen.",
    ),
    (
        Clause(verb=verb("warten", "wait"), subject=the("boy", plural=True), tense=Tense.WAS_DOING,
               complements=(the("bus"),)),
        "The boys were waiting for the bus.",
        "Die Jungen warteten auf den Bus.",
    ),
    (
        Clause(verb=verb("gefallen", "like"), subject=ICH, tense=Tense.HABIT, complements=(the("film"),)),
        "I like the film.",
        "Der Film gefällt mir.",
    ),
    (
        Clause(verb=verb("ausruhen", "rest"), subject=the("man"), tense=Tense.SPOKEN, front=YESTERDAY),
        "Yesterday the man rested.",
        "Gestern hat sich der Mann ausgeruht.",
    ),
    (
        Clause(verb=MOVES[0], subject=ANNA, tense=Tense.TOLD,
               adverbials=(INTO_FOREST,)),
        "Anna went into the quiet forest.",
        "Anna ging in den ruhigen Wald.",
    ),
    (
        Clause(verb=SITS[0], subject=Phrase(noun=noun("key"), determiner=possessive("ich")), tense=Tense.HABIT,
               adverbials=(Adjunct(preposition="auf", case=DAT, english="on", nominal=the("table"), kind="goal"),)),
        "My key is on the table.",
        "Mein Schlüssel liegt auf dem Tisch.",
    ),
    (
        Clause(verb=BE, subject=the("dog"), tense=Tense.HABIT,
               predicate=Quality(adjective=adjective("big"), degree=1, standard=the("cat"))),
        "The dog is bigger than the cat.",
        "Der Hund ist größer als die Katze.",
    ),
    (
        Clause(verb=BECOME, subject=ANNA, tense=Tense.HABIT, modal=Modal.WANT, predicate=Role(noun=noun("artist"))),
        "Anna wants to become an artist.",
        "Anna will Künstlerin werden.",
    ),
    (
        Clause(verb=EXIST, subject=Person(pronoun="es"), tense=Tense.HABIT, complements=(a("museum", "old"),),
               is_negated=True, front=IN_VILLAGE),
        "In the village there is no old museum.",
        "Im Dorf gibt es kein altes Museum.",
    ),
    (
        Clause(verb=verb("reparieren", "repair"), subject=the("car"), tense=Tense.TOLD, is_passive=True,
               adverbials=(YESTERDAY,)),
        "The car was repaired yesterday.",
        "Das Auto wurde gestern repariert.",
    ),
    (
        Clause(verb=verb("trinken", "drink"), subject=the("guest"), tense=Tense.NOW, is_negated=True,
               complements=(Phrase(noun=noun("milk"), determiner=BARE),)),
        "The guest is not drinking any milk.",
        "Der Gast trinkt keine Milch.",
    ),
    (
        Clause(verb=READ, subject=the("girl"), tense=Tense.NOW,
               complements=(Phrase(noun=noun("poem"), determiner=THE, owner=the("author")),)),
        "The girl is reading the author's poem.",
        "Das Mädchen liest das Gedicht der Autorin.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("clause", "english", "german"), STATEMENTS, ids=[row[2] for row in STATEMENTS])
def test_statements(clause: Clause, english: str, german: str) -> None:
    statement = Statement(clause=clause)
    assert (statement.english(), statement.german()) == (english, german)


def related(head: str, clause: Clause) -> Phrase:
    return Phrase(noun=noun(head), determiner=THE, relative=clause)


RELATIVES = [
    (
        related("man", Clause(verb=READ, subject=Relative(column=0, is_person=True), tense=Tense.NOW,
                              complements=(a("letter"),))),
        "The man who is reading a letter is laughing.",
        "Der Mann, der einen Brief liest, lacht.",
    ),
    (
        related("woman", Clause(verb=verb("helfen", "help"), subject=ICH, tense=Tense.SPOKEN,
                                complements=(Relative(column=1, is_person=True),))),
        "The woman whom I helped is laughing.",
        "Die Frau, der ich geholfen habe, lacht.",
    ),
    (
        related("child", Clause(verb=verb("warten", "wait"), subject=ANNA, tense=Tense.NOW,
                                complements=(Relative(column=2, is_person=True),))),
        "The child whom Anna is waiting for is laughing.",
        "Das Kind, auf das Anna wartet, lacht.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("subject", "english", "german"), RELATIVES, ids=[row[2] for row in RELATIVES])
def test_relative_pronouns_take_their_case_from_the_relative_clause(
    subject: Phrase, english: str, german: str
) -> None:
    statement = Statement(clause=Clause(verb=verb("lachen", "laugh"), subject=subject, tense=Tense.NOW))
    assert (statement.english(), statement.german()) == (english, german)


def test_a_relative_clause_moves_behind_the_participle() -> None:
    book = related("book", Clause(verb=verb("kaufen", "buy", 1), subject=ANNA, tense=Tense.SPOKEN,
                                  complements=(Relative(column=2, is_person=False),)))  # fmt: skip
    statement = Statement(clause=Clause(verb=READ, subject=ICH, tense=Tense.SPOKEN, complements=(book,)))
    assert statement.german() == "Ich habe das Buch gelesen, das Anna gekauft hat."
    assert statement.english() == "I read the book that Anna bought."


TIRED = Clause(
    verb=BE, subject=Person(pronoun="er"), tense=Tense.HABIT, predicate=Quality(adjective=adjective("funny"))
)
SLEEPS = Clause(verb=verb("schlafen", "sleep"), subject=the("boy"), tense=Tense.NOW)
OTHERS: list[tuple[Sentence, str, str]] = [
    (
        Complex(main=SLEEPS, conjunction=BECAUSE, subordinate=TIRED),
        "The boy is sleeping because he is funny.",
        "Der Junge schläft, weil er lustig ist.",
    ),
    (
        Complex(main=SLEEPS, conjunction=BECAUSE, subordinate=TIRED, is_subordinate_first=True),
        "Because he is funny, the boy is sleeping.",
        "Weil er lustig ist, schläft der Junge.",
    ),
    (
        Complex(
            main=Clause(verb=verb("wissen", "know"), subject=ICH, tense=Tense.HABIT),
            conjunction=THAT,
            subordinate=Clause(
                verb=verb("anrufen", "phone"), subject=ANNA, tense=Tense.NOW, complements=(the("doctor"),)
            ),
        ),
        "I know that Anna is phoning the doctor.",
        "Ich weiß, dass Anna die Ärztin anruft.",
    ),
    (
        Question(
            clause=Clause(verb=READ, subject=DU, tense=Tense.SPOKEN, complements=(the("book"),)),
            address=Address(pronoun="du", listener=ANNA),
            has_word=False,
        ),
        "Did you read the book, Anna?",
        "Hast du das Buch gelesen, Anna?",
    ),
    (
        Question(
            clause=Clause(
                verb=verb("warten", "wait"),
                subject=SIE,
                tense=Tense.NOW,
                complements=(Asked(is_person=False),),
            ),
            address=Address(pronoun="Sie", listener=WEBER),
            has_word=True,
        ),
        "What are you waiting for, Mr Weber?",
        "Worauf warten Sie, Herr Weber?",
    ),
    (
        Question(
            clause=Clause(
                verb=verb("helfen", "help"),
                subject=Asked(is_person=True),
                tense=Tense.NOW,
                complements=(ANNA,),
            ),
            address=None,
            has_word=True,
        ),
        "Who is helping Anna?",
        "Wer hilft Anna?",
    ),
    (
        Command(
            clause=Clause(verb=verb("setzen", "sit"), subject=DU, tense=Tense.HABIT),
            address=Address(pronoun="du", listener=ANNA),
        ),
        "Please sit down, Anna.",
        "Setze dich, Anna.",
    ),
    (
        Pursuit(
            main=Clause(verb=PURSUITS[0], subject=ICH, tense=Tense.NOW),
            aim=Clause(
                verb=verb("abholen", "pick"), subject=ICH, tense=Tense.HABIT, complements=(the("parcel"),)
            ),
        ),
        "I am trying to pick up the parcel.",
        "Ich versuche, das Paket abzuholen.",
    ),
    (
        Joined(
            first=Clause(verb=READ, subject=ICH, tense=Tense.SPOKEN, complements=(the("letter"),)),
            conjunction=Conjunction(german=" und", english=" and"),
            second=Clause(verb=verb("gehen", "go", 0), subject=ICH, tense=Tense.SPOKEN),
            shares_subject=True,
        ),
        "I read the letter and went home.",
        "Ich habe den Brief gelesen und bin nach Hause gegangen.",
    ),
]


@pytest.mark.parametrize(("sentence", "english", "german"), OTHERS, ids=[row[2] for row in OTHERS])
def test_other_sentences(sentence: Sentence, english: str, german: str) -> None:
    assert (sentence.english(), sentence.german()) == (english, german)
