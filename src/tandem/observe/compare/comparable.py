"""Whether numbers of two runs mean the same: the same text, measured in the same way, in the same pieces."""

from collections.abc import Mapping
from math import isfinite
from typing import Literal

from tandem.observe.numbers import count
from tandem.observe.series.columns import Evaluation, Series
from tandem.runlog.card import HeldOut

__all__ = ["Scored", "bleu_objection", "is_measured", "loss_objection", "token_objection"]

Scored = Literal["bleu", "valid_loss"]

VALID = "valid"
ENOUGH_SAMPLES = 2
"""Sentences from different places of a text that, being the same, say that so is the text."""


def bleu_objection(one: Series, other: Series) -> str:
    """Why BLEU of two runs cannot be compared, as a sentence; empty where it can."""
    signatures = [_signature(series) for series in (one, other)]
    if signatures[0] != signatures[1]:
        return f"BLEU was counted in different ways ({signatures[0]} and {signatures[1]})."
    sizes = [_last(series, "bleu").sentences for series in (one, other)]
    if sizes[0] != sizes[1]:
        return f"BLEU is of {count(sizes[0])} sentences in one and of {count(sizes[1])} in the other."
    return _other_text(one, other)


def loss_objection(one: Series, other: Series) -> str:
    """Why losses on the valid text cannot be compared, as a sentence; empty where they can."""
    tools = [series.imported.tool for series in (one, other) if series.imported is not None]
    if tools:
        return f"A loss of {tools[0]} was imported: what it counts, and over which text, is not known."
    if told := token_objection(one, other):
        return told
    sizes = [_last(series, "valid_loss").valid_tokens for series in (one, other)]
    if sizes[0] != sizes[1]:
        return (
            f"The valid text has {count(sizes[0])} target tokens in one and {count(sizes[1])} in the other: it is "
            "another text, or was cut into other pieces, and a loss is a token's."
        )
    return _other_text(one, other)


def is_measured(each: Evaluation, name: Scored) -> bool:
    """Whether an evaluation looked for the value, and be it that it found no finite one."""
    return isfinite(getattr(each, name)) or (each.sentences if name == "bleu" else each.valid_tokens) > 0


def token_objection(one: Series, other: Series) -> str:
    """Why a token of one run is not a token of the other, as a sentence; empty where nothing speaks against it."""
    recipes = [series.recipe.get("subword") for series in (one, other)]
    sizes = [None if series.card is None else series.card.vocabulary for series in (one, other)]
    held = [_held_out(series) for series in (one, other)]
    pieces = [None if each is None else (each.words, each.tokens) for each in held]
    texts = [None if each is None else each.words for each in held]
    is_other = (
        (None not in recipes and recipes[0] != recipes[1])
        or (None not in sizes and _vocabulary(one) != _vocabulary(other))
        or (None not in texts and texts[0] == texts[1] and pieces[0] != pieces[1])
    )
    return "Their texts were cut into other pieces, so a token is not the same in both." if is_other else ""


def _vocabulary(series: Series) -> tuple[str, int] | None:
    card = series.card
    return None if card is None else (card.vocabulary.kind, card.vocabulary.size)


def _signature(series: Series) -> str:
    """How BLEU was counted; the version of sacreBLEU says nothing about that."""
    parts = _last(series, "bleu").bleu_signature.split("|")
    return "|".join(part for part in parts if not part.startswith(("version:", "v:"))) or "not told how"


def _last(series: Series, name: Scored) -> Evaluation:
    return next(each for each in reversed(series.evaluations) if is_measured(each, name))


def _other_text(one: Series, other: Series) -> str:
    """Why the valid texts are not known to be the same."""
    held = [_held_out(series) for series in (one, other)]
    sizes = [None if each is None else (each.pairs, each.words) for each in held]
    if None not in sizes and sizes[0] != sizes[1]:
        return "Their valid texts differ in length: they are not the same text."
    samples = [_samples(series) for series in (one, other)]
    shared = samples[0].keys() & samples[1].keys()
    if any(samples[0][number] != samples[1][number] for number in shared):
        return "Sentences of their valid texts differ: they are not the same text."
    is_described = None not in sizes and (shared or _valid_entry(one) == _valid_entry(other) is not None)
    if is_described or len(shared) >= ENOUGH_SAMPLES:
        return ""
    return "Whether both were measured on the same text is not in their logs."


def _held_out(series: Series) -> HeldOut | None:
    card = series.card
    return None if card is None else next((each for each in card.held_out if each.name == VALID), None)


def _samples(series: Series) -> dict[int, tuple[str, str]]:
    return {each.number: (each.source, each.reference) for each in series.translations if each.set == VALID}


def _valid_entry(series: Series) -> object:
    data = series.recipe.get("data")
    return data.get(VALID) if isinstance(data, Mapping) else None
