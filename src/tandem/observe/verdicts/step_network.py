"""How does the time of a step relate to the network? Its split, and its bytes, predicted and measured."""

import math

import numpy as np
from numpy.typing import NDArray

from tandem.observe.confidence import Grounds, Scale
from tandem.observe.exchange import Exposure, measure_exchange
from tandem.observe.exchange_mode import encoded_mode, step_bytes
from tandem.observe.finding import Evidence, Finding, Question
from tandem.observe.numbers import percent
from tandem.observe.ring import Traffic, link_capacity, traffic_per_step
from tandem.observe.series.columns import Series
from tandem.observe.shares import find_shares, shares_sentence
from tandem.observe.statistics import Estimate, block_means
from tandem.observe.told import ToldLink, told_link
from tandem.observe.verdicts.imported_network import doubt_seen
from tandem.observe.verdicts.network_evidence import BYTES, carried_evidence, link_evidence, mode_evidence
from tandem.observe.verdicts.words import byte_rate, megabytes_of, seconds

__all__ = ["QUESTION", "judge"]

QUESTION = Question(
    number=11,
    key="step_network",
    question="How does the time of a step relate to the network?",
    about="What the time of a step is made of, beside the bytes that it puts on the network: predicted by the "
    "arithmetic of a ring, and counted by the interfaces.",
    would_change="Phases of more steps, probes of the exchange, and samples of every host's interfaces.",
    figure="step_bytes",
)
BLOCKS = 40
FEWEST_BLOCKS = 8
STEADY = 0.02
"""Steps whose blocks differ by less, against their mean, teach nothing about what makes them longer."""
LONG = 2.0
"""Medians from which a step is said to have taken long."""
RATHER = 0.5
"""Chance of a split that may as well be another."""
NEAR = 0.08
"""Share of the step by which the cost of the exchange may be off and is still what was said."""
APART = 0.15
"""Measured bytes that differ from the predicted ones by more are remarked on."""


def judge(series: Series) -> Finding:
    """Put the split of the step beside the bytes that crossed the link in it."""
    if series.imported is not None:
        return _imported(told_link(series))
    exposure = measure_exchange(series)
    if exposure is None:
        text = "Cannot tell: too few steps were logged with their phases."
        return QUESTION.cannot_tell(text, missing=("phases of steps",))
    if exposure.ranks == 1:
        text = f"One rank exchanges nothing: all of the {seconds(exposure.step_s)} a step are its own."
        return QUESTION.answer("measured", Grounds(), text, evidence=_parts(exposure), figure="anatomy")
    return _measured(series, exposure)


def _measured(series: Series, exposure: Exposure) -> Finding:
    needed = step_bytes(series, exposure.ranks)
    traffic = traffic_per_step(series) if exposure.hosts != 1 else ()
    lacks = (
        (not exposure.probes, "steps with and without exchange (probes)"),
        (not exposure.split.is_complete, "logs of all ranks"),
        (exposure.hosts != 1 and not traffic, "samples of the interfaces"),
    )
    missing = tuple(name for lacking, name in lacks if lacking)
    sentences = (
        _lead(exposure, needed),
        _shared(series),
        _carried(traffic, needed=needed, step_s=exposure.step_s, mode=encoded_mode(series)),
        _variation(exposure),
    )
    return QUESTION.answer(
        "measured",
        Grounds(
            chance=_chance(exposure),
            kind=exposure.kind,
            coverage=exposure.coverage,
            lacks=missing,
        ),
        " ".join(text for text in sentences if text),
        evidence=(*_parts(exposure), *_byte_evidence(series, exposure.ranks, needed=needed, traffic=traffic)),
        missing=missing,
        figure="step_bytes" if missing else "anatomy",
    )


def _chance(exposure: Exposure) -> float:
    """That the cost of the exchange is what is said, or near it; without probes a lower bound is said, and holds."""
    if not exposure.split.is_complete or not exposure.probes:
        return 1.0 if exposure.split.is_complete else RATHER
    cost = Estimate(value=exposure.network_s, low=exposure.low_s, high=exposure.high_s)
    near = NEAR * exposure.step_s
    borders = (cost.value - near, cost.value + near)
    answer, chance = Scale(borders=borders, answers=("less", "near", "more")).weigh(cost)
    return max(RATHER, chance if answer == "near" else 1 - chance)


def _lead(exposure: Exposure, needed: float) -> str:
    what = f"{megabytes_of(needed)} of gradients in each direction" if needed else "the sum of the gradients"
    ways = {
        0: " (whether through links of hosts is not known)",
        1: ", through the memory of their one host",
    }
    way = ways.get(exposure.hosts, ", through each host's link")
    cost = f"{seconds(exposure.network_s)} ({percent(exposure.share(exposure.network_s))})"
    bound = "" if exposure.probes else "at least "
    return (
        f"Of the {seconds(exposure.step_s)} of a step, {bound}{cost} are the cost of {what}{way}; "
        f"{seconds(exposure.compute_s)} are forward and backward, {seconds(exposure.straggler_s)} waiting for the "
        f"slowest rank, {seconds(exposure.data_s)} for data, {seconds(exposure.optimizer_s)} the optimiser and "
        f"{seconds(exposure.other_s)} the rest."
    )


def _shared(series: Series) -> str:
    changed = find_shares(series.marks)
    sentence = "" if changed is None else shares_sentence(changed)
    return f"{sentence[:1].upper()}{sentence[1:]}." if sentence else ""


def _carried(traffic: tuple[Traffic, ...], *, needed: float, step_s: float, mode: str) -> str:
    if not traffic:
        return ""
    most = max(traffic, key=lambda each: each.fuller_bytes)
    how = f"the exchange in mode {mode}" if mode else "the ring"
    text = (
        f"{most.host}'s {most.interface} sent {megabytes_of(most.sent_bytes)} and received "
        f"{megabytes_of(most.received_bytes)} a step, {byte_rate(most.fuller_bytes / step_s)} in the fuller direction"
    )
    if not needed or abs(most.fuller_bytes / needed - 1) <= APART:
        return f"{text}, as {how} predicts." if needed else f"{text}."
    if most.fuller_bytes > needed:
        return f"{text}: more than {how} needs, so the link also carried other traffic."
    return f"{text}: less than {how} needs, so the exchange went another way or another interface."


def _variation(exposure: Exposure) -> str:
    split = exposure.split
    whole, wait = (
        block_means(split.step.astype(np.float64), each, blocks=BLOCKS)[1]
        for each in (split.step_s, split.network_s)
    )
    spread = float(np.std(whole) / np.mean(whole)) if len(whole) else 0.0
    if len(whole) < FEWEST_BLOCKS or len(split.step) < FEWEST_BLOCKS * 2:
        return ""
    if spread < STEADY:
        return _rare(split.step_s) or (
            "The same bytes cross in every step and it hardly varies over the run, which teaches nothing more."
        )
    together = 0.0 if np.std(wait) == 0 else float(np.corrcoef(whole, wait)[0, 1])
    return (
        f"Over the run the step varies by {percent(spread)}; {percent(max(0.0, together) ** 2)} of that goes with the "
        f"wait for the exchange, whose bytes stay the same."
    )


def _rare(step_s: NDArray[np.float64]) -> str:
    """What steps that take far longer than others come to; empty where that is little."""
    slow = step_s > LONG * np.median(step_s)
    share = float(step_s[slow].sum() / step_s.sum())
    if share < STEADY:
        return ""
    return (
        f"The same bytes cross in every step; {percent(float(slow.mean()))} of the steps take over {LONG:g} medians, "
        f"and {percent(share)} of the time."
    )


def _parts(exposure: Exposure) -> tuple[Evidence, ...]:
    exchange = (
        "probes: with exchange − without" if exposure.probes else "the least wait of any rank: a lower bound"
    )
    rows = (
        ("computing", exposure.compute_s, "forward and backward, less what the exchange slows them"),
        ("exchange", exposure.network_s, exchange),
        ("exchange on one host", exposure.inner_s, "the same, in the part of the run that was on one host"),
        ("waiting for the slowest rank", exposure.straggler_s, "what ranks wait beyond the least wait"),
        ("waiting for data", exposure.data_s, "no batch was there"),
        ("standstill", exposure.stalled_s, "forward and backward beyond twice a rank's usual time"),
        ("optimiser", exposure.optimizer_s, "new weights"),
        ("rest", exposure.other_s, "what has no name"),
    )
    whole = Evidence(
        name="step",
        value=exposure.step_s,
        unit="s",
        definition=f"mean of {len(exposure.split.step):,} steady steps, {exposure.ranks} ranks: the sum of its parts",
        figure="anatomy",
    )
    known = [row for row in rows if row[1] or row[0] != "exchange on one host"]
    parts = tuple(
        Evidence(
            name=name,
            value=value,
            unit="s",
            low=exposure.low_s if name == "exchange" and exposure.ranks > 1 else None,
            high=exposure.high_s if name == "exchange" and exposure.ranks > 1 else None,
            definition=f"a step, mean over ranks: {meaning}",
            figure="anatomy",
        )
        for name, value, meaning in known
    )
    return (whole, *parts)


def _byte_evidence(
    series: Series, ranks: int, *, needed: float, traffic: tuple[Traffic, ...]
) -> tuple[Evidence, ...]:
    found = [
        Evidence(
            name="bytes a step, predicted",
            value=needed,
            unit="bytes",
            definition=f"in each direction: {BYTES}",
            figure="step_bytes",
        ),
        *mode_evidence(series, ranks),
    ]
    for each in traffic:
        found += carried_evidence(each, figure="step_bytes")
    capacity = link_capacity(series, traffic) if traffic else None
    if capacity is not None:
        found.append(link_evidence(capacity))
    return tuple(found)


def _imported(told: ToldLink) -> Finding:
    if told.ranks == 1:
        text = "One GPU exchanges nothing over a network."
        return QUESTION.answer("measured", Grounds(lacks=("phases of steps",)), text, figure="anatomy")
    if told.hosts == 1:
        text = f"All {told.ranks or 'its'} GPUs were in one host: their exchange crossed no network."
        lacks = ("phases of steps",)
        return QUESTION.answer("measured", Grounds(lacks=lacks), text, missing=lacks)
    if not told.fp32_bytes or math.isnan(told.step_s):
        text = "Cannot tell: the files lack the number of GPUs, of parameters, or the time of a step."
        return QUESTION.cannot_tell(text, missing=("bytes a step", "phases of steps"))
    text, carried = _told_unseen(told), tuple[Evidence, ...]()
    is_seen = not math.isnan(told.seen_bytes_per_s) and not told.is_seen_too_little
    if is_seen:
        text, carried = _told_seen(told), (_seen_evidence(told),)
    return QUESTION.answer(
        "measured" if is_seen else "cannot tell",
        Grounds(lacks=("phases of steps",)),
        text,
        evidence=(
            Evidence(
                name="bytes a step, predicted",
                value=told.fp32_bytes,
                unit="bytes",
                definition="in each direction, fp32: 2 · (n − 1) / n · 4 bytes · parameters",
            ),
            Evidence(name="step", value=told.step_s, unit="s", definition="median, as the tool logged it"),
            *carried,
        ),
        missing=("phases of steps", "bytes on the interfaces of each host, by direction"),
    )


def _told_bytes(told: ToldLink) -> str:
    halves = f" ({megabytes_of(told.fp16_bytes)} if sent as fp16)" if told.is_mixed else ""
    return (
        f"a ring of {told.ranks} puts {megabytes_of(told.fp32_bytes)}{halves} a step on each host's link in each "
        f"direction"
    )


def _told_unseen(told: ToldLink) -> str:
    known = "nothing on the link was measured"
    if told.is_seen_too_little:
        known = f"nothing sound is known of the link. {doubt_seen(told)}"
    else:
        known += f". That would be {byte_rate(told.fp32_bytes / told.step_s)} on average."
    return (
        f"Cannot tell how much of the step's {seconds(told.step_s)} is the network: {_told_bytes(told)}, by "
        f"arithmetic alone, and {known}"
    )


def _told_seen(told: ToldLink) -> str:
    rate = told.seen_bytes_per_s
    seen = rate * told.step_s
    return (
        f"In a step of {seconds(told.step_s)} the {byte_rate(rate)} seen come to {megabytes_of(seen)}, if that is one "
        f"direction; {_told_bytes(told)}, {percent(told.fp32_bytes / seen)} of that. At that rate those bytes take "
        f"{seconds(told.fp32_bytes / rate)}. How much of it computing hides was not measured."
    )


def _seen_evidence(told: ToldLink) -> Evidence:
    return Evidence(
        name="bytes a step, by the rate seen",
        value=told.seen_bytes_per_s * told.step_s,
        unit="bytes",
        definition="rate seen on the interface · median step; one direction is assumed",
    )
