"""A smaller sample to verify exports on: a model that has learned nothing goes on to the limit of every sentence."""

from tandem.config import Recipe
from tandem.data.subword.learn import Subword
from tandem.export.sample import sample_sentences
from tandem.translate.engine import Sentence

FEW = 6
MOST = 12


def few_sentences(recipe: Recipe, subword: Subword) -> list[Sentence]:
    """The first of the usual sample."""
    return [
        Sentence(source=sentence.source[:MOST], most=MOST)
        for sentence in sample_sentences(recipe, subword)[:FEW]
    ]
