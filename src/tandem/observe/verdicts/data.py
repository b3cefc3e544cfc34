"""How big is the training set? Raw, cleaned, as tokens and on disk, which are taken for one another."""

import math

from tandem.observe.confidence import Grounds
from tandem.observe.data_card.answers import QUESTION as ASKED
from tandem.observe.data_card.answers import headline
from tandem.observe.facts import fact_number
from tandem.observe.finding import Evidence, Finding, Question
from tandem.observe.numbers import count, percent, share
from tandem.observe.series.columns import Series
from tandem.runlog.card import DataCard

__all__ = ["QUESTION", "judge"]

QUESTION = Question(
    number=7,
    key="data",
    question=ASKED,
    about="The training set has several sizes: files as they were given, pairs after cleaning, tokens, and the bytes "
    "on disk that training reads.",
    would_change="Data that are prepared anew, with other files or other filters.",
)
CARD = "the data card: bytes, lines and tokens of the prepared data"
LEAKY = "The test set was not compared with the training set: overlap flatters scores."


def judge(series: Series) -> Finding:
    """Answer from the data card; without one, say what the log has."""
    if series.card is not None:
        return _from_card(series, series.card)
    if series.imported is not None:
        return _imported(series)
    started = series.started
    if started is not None and started.pairs > 0:
        text = f"{count(started.pairs)} sentence pairs an epoch; bytes and tokens are not in the log."
        pairs = Evidence(
            name="pairs",
            value=started.pairs,
            definition="sentence pairs of an epoch, as training began with them",
        )
        return QUESTION.answer("measured", Grounds(lacks=(CARD,)), text, evidence=(pairs,), missing=(CARD,))
    return QUESTION.cannot_tell("Cannot tell: the log has no data card.", missing=(CARD,))


def _from_card(series: Series, card: DataCard) -> Finding:
    dropped = sum(each.count for each in card.dropped)
    removed = f" Cleaning dropped {count(dropped)} of {count(card.raw.lines)} pairs" if dropped else ""
    worst = max(card.dropped, key=lambda each: each.count, default=None)
    if removed and worst is not None:
        removed += f", most of them for: {worst.reason}" if len(card.dropped) > 1 else f": {worst.reason}"
        removed += "."
    text = f"{headline(card)}{removed} Padding is {percent(_padding(series, card))} of a batch."
    unchecked = [each.name for each in card.held_out if not each.overlap_checked]
    return QUESTION.answer(
        "measured",
        Grounds(),
        text,
        evidence=(*_size_evidence(card), *_dropped_evidence(card), *_batch_evidence(series, card)),
        advice=LEAKY if unchecked else "",
        missing=tuple(f"overlap with {name}" for name in unchecked),
        figure="dropped",
    )


def _padding(series: Series, card: DataCard) -> float:
    if series.planned is not None:
        return series.planned.padding_share
    is_packed = series.started is not None and series.started.layout == "packed"
    return card.batching.packed_share if is_packed else card.batching.padded_share


def _size_evidence(card: DataCard) -> tuple[Evidence, ...]:
    clean, tokens, words = card.cleaned, card.tokens, card.words
    rows = (
        ("raw files", card.raw.bytes, "bytes", "on disk, as they were given, compressed or not"),
        ("raw pairs", card.raw.lines, "", "lines of one side before cleaning"),
        (
            "clean text",
            clean.source_bytes + clean.target_bytes,
            "bytes",
            "UTF-8 of both sides, line ends included",
        ),
        ("clean pairs", clean.lines, "", "lines of one side after cleaning: the training set"),
        ("words", words.source + words.target, "", "of both sides, split at white space"),
        ("tokens", tokens.source + tokens.target, "", "pieces of both sides, with one end mark a sentence"),
        ("target tokens", tokens.target, "", "what a model learns to say in one epoch"),
        (
            "shards",
            card.stored.bytes,
            "bytes",
            f"{count(card.stored.pairs)} pairs as ids on disk: what training reads",
        ),
    )
    return tuple(
        Evidence(
            name=name, value=value, unit=unit, definition=meaning, figure="lengths" if "token" in name else ""
        )
        for name, value, unit, meaning in rows
    )


def _dropped_evidence(card: DataCard) -> tuple[Evidence, ...]:
    found = [
        Evidence(
            name=f"dropped: {each.reason}",
            value=each.count,
            definition=f"pairs, {percent(share(each.count, card.raw.lines))} of the raw ones",
            figure="dropped",
        )
        for each in card.dropped
    ]
    found += [
        Evidence(
            name=f"overlap with {each.name}",
            value=each.overlap_removed if each.overlap_checked else "not looked for",
            definition="training pairs that are also in that set, and were taken out",
        )
        for each in card.held_out
    ]
    return tuple(found)


def _batch_evidence(series: Series, card: DataCard) -> tuple[Evidence, ...]:
    return (
        Evidence(
            name="padding",
            value=_padding(series, card),
            unit="share",
            definition="positions of a batch that hold no token, both sides, as batches are laid out in this run",
        ),
        Evidence(
            name="updates an epoch",
            value=series.planned.updates_per_epoch
            if series.planned is not None
            else card.batching.updates_per_epoch,
            definition=f"at {count(card.batching.target_tokens)} target tokens an update"
            if series.planned is None
            else "as planned in this run",
        ),
    )


def _imported(series: Series) -> Finding:
    pairs, gpus = fact_number(series, "pairs_per_gpu"), fact_number(series, "gpus")
    steps = int(series.steps.step[-1]) if len(series.steps) else 0
    if math.isnan(pairs) or math.isnan(gpus) or not steps:
        text = "Cannot tell: the size of the training set is not in the files that were read."
        return QUESTION.cannot_tell(text, missing=(CARD,))
    read = int(pairs * gpus * steps)
    text = (
        f"Cannot tell: the files do not say how big the training set is. In {count(steps)} steps of {int(pairs)} pairs "
        f"on each of {int(gpus)} GPUs the run read {count(read)} pairs, however often each."
    )
    seen = Evidence(name="pairs read", value=read, definition="pairs a GPU · GPUs · steps; repetitions count")
    return QUESTION.cannot_tell(text, evidence=(seen,), missing=(CARD,))
