"""Which split a meaning belongs to, decided by its content words alone, so that no sentence can be in two splits.

Words that share a form in either language share an identity. The nouns, verbs and adjectives of a sentence can
therefore be read off its English as well as off its German, and both readings give the same split.
"""

from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from typing import Literal

from tandem.data.corpus.builtin.adjectives import ADJECTIVES, MOODS
from tandem.data.corpus.builtin.meaning import Clause, Nominal, Pair, Phrase, Quality, Role
from tandem.data.corpus.builtin.nouns import NOUNS
from tandem.data.corpus.builtin.sentence import Sentence
from tandem.data.corpus.builtin.verbs import VERBS
from tandem.data.corpus.builtin.words import Adjective, Noun, Verb

__all__ = ["Split", "split_of", "stable_hash"]

Split = Literal["train", "valid", "test"]
Word = Noun | Verb | Adjective

_BITS = 64
_TENTHS: tuple[Split, ...] = ("valid", "test", *("train",) * 8)


def stable_hash(text: str) -> int:
    """Hash text to 64 bits, the same on every machine."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


def _forms(word: Word) -> set[str]:
    if isinstance(word, Noun):
        return {f"de {form}" for form in word.german if form} | {f"en {form}" for form in word.english}
    if isinstance(word, Adjective):
        return {f"de {form}" for form in (word.predicate, *word.german)} | {
            f"en {form}" for form in word.english
        }
    german, english = word.german, word.english
    de = {german.infinitive, german.participle, *german.present, *german.preterite}
    en = {english.base, english.third, english.past, english.participle, english.ing}
    return {f"de {form}" for form in de} | {f"en {form}" for form in en}


@cache
def _identities() -> dict[Word, int]:
    """Give every word a number, the same for words that are linked by a chain of shared forms."""
    words: list[Word] = [*NOUNS, *ADJECTIVES, *MOODS, *VERBS]
    group = list(range(len(words)))

    def root(i: int) -> int:
        while group[i] != i:
            group[i] = group[group[i]]
            i = group[i]
        return i

    owner: dict[str, int] = {}
    for i, word in enumerate(words):
        for form in sorted(_forms(word)):
            group[root(i)] = root(owner.setdefault(form, i))
    return {word: stable_hash(f"word {min(_forms(words[root(i)]))}") for i, word in enumerate(words)}


def _words_of(nominal: Nominal | None) -> Iterator[Word]:
    if isinstance(nominal, Phrase):
        yield nominal.noun
        yield from nominal.adjectives
        yield from _words_of(nominal.owner)
        if nominal.relative:
            yield from _words_in(nominal.relative)
    elif isinstance(nominal, Pair):
        yield from _words_of(nominal.first)
        yield from _words_of(nominal.second)
    elif isinstance(nominal, Quality):
        yield nominal.adjective
        yield from _words_of(nominal.standard)
    elif isinstance(nominal, Role):
        yield nominal.noun


def _words_in(clause: Clause) -> Iterator[Word]:
    yield clause.verb
    yield from _words_of(clause.subject)
    for nominal in clause.complements:
        yield from _words_of(nominal)
    yield from _words_of(clause.predicate)
    for adverbial in clause.adverbials:
        yield from _words_of(getattr(adverbial, "nominal", None))
    yield from _words_of(getattr(clause.front, "nominal", None))


def split_of(sentence: Sentence) -> Split:
    """Tell which split holds every sentence with these content words."""
    identities = _identities()
    total = sum(identities[word] for clause in sentence.clauses() for word in _words_in(clause))
    # The sum is the same in any order; a multiplication by an odd constant spreads it before the top bits decide.
    mixed = (total * 0x9E3779B97F4A7C15) % (1 << _BITS)
    return _TENTHS[mixed * len(_TENTHS) >> _BITS]
