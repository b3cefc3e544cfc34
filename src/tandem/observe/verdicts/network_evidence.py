"""The question about the network and what its answer rests on: exposed time, other networks, bytes on the links."""

import math

from tandem.observe.exchange import Exposure
from tandem.observe.exchange_mode import (
    ModeCost,
    codec_seconds,
    cost_in_mode,
    cost_of_exact,
    encoded_mode,
    mode_bytes,
)
from tandem.observe.finding import Evidence, Question
from tandem.observe.mode_of_steps import chosen_modes
from tandem.observe.numbers import count, percent
from tandem.observe.ring import Capacity, Traffic, WhatIf, gradient_bytes, ring_bytes
from tandem.observe.series.columns import Series
from tandem.observe.verdicts.words import megabytes_of
from tandem.runlog.event import ExchangeChecked

__all__ = [
    "BYTES",
    "PARTLY",
    "QUESTION",
    "RULE",
    "YES",
    "byte_evidence",
    "carried_evidence",
    "check_evidence",
    "exposed_evidence",
    "link_evidence",
    "mode_evidence",
    "ordered_evidence",
    "other_evidence",
]

YES, PARTLY = 0.25, 0.10
"""Shares of the step that a network without cost would save."""

BYTES = "2 · (n − 1) / n · bytes of gradients, or in encoded modes their codes, mean over the steps"
"""How the bytes of a step are reckoned."""

RULE = (
    f"yes: without the exchange the step would be at least {YES:.0%} shorter; partly: at least {PARTLY:.0%}; "
    "no: less".replace("%", " %")
)
QUESTION = Question(
    number=5,
    key="network",
    question="Was the network the bottleneck?",
    about="The share of the step that would vanish if the exchange of gradients took no time: from "
    f"{YES:.0%} on the network is the bottleneck, from {PARTLY:.0%} on it partly is.".replace("%", " %"),
    would_change=f"The verdict is by this rule: {RULE}. Probes that say so over more steps would change it.",
    figure="exchange",
)


def exposed_evidence(exposure: Exposure) -> tuple[Evidence, ...]:
    """What the exchange costs, and what else is waited for."""
    return (*_cost_evidence(exposure), *_wait_evidence(exposure))


def _cost_evidence(exposure: Exposure) -> tuple[Evidence, ...]:
    known = (
        f"the wait, and what {exposure.probes} probes show it slows the computing beside it: (step with exchange) − "
        "(step without), each of the slowest rank"
        if exposure.probes
        else "the wait alone, which cannot see how the exchange slows computing: a lower bound"
    )
    step = exposure.share
    return (
        Evidence(
            name="exposed communication",
            value=exposure.network_s,
            unit="s",
            low=exposure.low_s,
            high=exposure.high_s,
            definition=f"a step, mean of {len(exposure.split.step):,} steady steps: {known}",
            figure="exchange",
        ),
        Evidence(
            name="exposed share",
            value=step(exposure.network_s),
            unit="share",
            low=step(exposure.low_s),
            high=step(exposure.high_s),
            definition=f"exposed communication / step; {RULE}",
            figure="anatomy",
        ),
        Evidence(
            name="wait for the network",
            value=exposure.wait_s,
            unit="s",
            definition="lower bound: the least that any rank waited after its backward; the last to arrive waits for "
            "nobody",
            figure="exchange",
        ),
    )


def _wait_evidence(exposure: Exposure) -> tuple[Evidence, ...]:
    return (
        Evidence(
            name="wait for the slowest rank",
            value=exposure.straggler_s,
            unit="s",
            definition="mean over ranks of what they waited beyond that; a faster network would not shorten it",
            figure="anatomy",
        ),
        Evidence(
            name="standstill",
            value=exposure.stalled_s,
            unit="s",
            definition="mean over ranks of what forward and backward took beyond twice their usual time",
            figure="anatomy",
        ),
        Evidence(
            name="wait for data",
            value=exposure.data_s,
            unit="s",
            definition="mean over ranks of the time in which no batch was there",
            figure="anatomy",
        ),
        Evidence(
            name="step",
            value=exposure.step_s,
            unit="s",
            definition="mean of the same steps, all phases together",
            figure="step_times",
        ),
    )


def other_evidence(other: WhatIf, exposure: Exposure) -> tuple[Evidence, ...]:
    """Steps as other networks and batches would make them."""
    is_bounded = exposure.saved_s < exposure.network_s
    model = "by step = max(T, f·T + α + bytes / rate)"
    return (
        Evidence(
            name="step without network",
            value=other.perfect_s,
            unit="s",
            low=None if is_bounded else exposure.step_s - exposure.high_s,
            high=None if is_bounded else exposure.step_s - exposure.low_s,
            definition="an infinitely fast network: step − exposed communication, or what the reader of data needs; "
            "where that sets the pace, the step as it is",
        ),
        Evidence(
            name="step with twice the link, or half the bytes",
            value=other.double_rate_s,
            unit="s",
            definition=f"{model}; no more than this, since what computing hides is not counted where the link's speed "
            "is not known",
        ),
        Evidence(name="step with ten times the link", value=other.tenfold_rate_s, unit="s", definition=model),
        Evidence(
            name="tokens/s with twice the batch",
            value=other.double_batch_gain,
            definition="against now: 2 · step / (step + computing + data + waiting for the slowest rank), since the "
            "exchange stays as it is",
        ),
    )


def byte_evidence(
    needed: float, *, traffic: tuple[Traffic, ...], capacity: Capacity | None, step_s: float
) -> tuple[Evidence, ...]:
    """Bytes a step as predicted and as counted, and the link that carries them."""
    found = []
    if needed:
        found.append(
            Evidence(
                name="bytes a step, predicted",
                value=needed,
                unit="bytes",
                definition=f"in each direction of each host's link: {BYTES}",
                figure="step_bytes",
            )
        )
    if capacity is not None:
        found.append(link_evidence(capacity))
    for each in traffic:
        found += carried_evidence(each, figure="network")
        if capacity is not None and step_s:
            found.append(
                Evidence(
                    name=f"{each.host} {each.interface} full",
                    value=each.fuller_bytes / step_s / capacity.bytes_per_s,
                    unit="share",
                    definition="bytes a step in the fuller direction / step / link; how full it is says nothing about "
                    "who waits",
                    figure="network",
                )
            )
    return tuple(found)


def mode_evidence(series: Series, ranks: int) -> tuple[Evidence, ...]:
    """The mode, its bytes and time against those of an exact exchange, where gradients were encoded."""
    mode = encoded_mode(series)
    if not mode:
        return ()
    exact, sent = ring_bytes(gradient_bytes(series), ranks), mode_bytes(series, ranks)
    evidence = [
        Evidence(
            name="exchange mode",
            value=mode,
            definition=f"of the last step: {chosen_modes(series)[-1].reason}",
        ),
        Evidence(
            name="bytes a step, exact exchange",
            value=exact,
            unit="bytes",
            definition=f"in each direction: 2 · (n − 1) / n · bytes of gradients; the last step was in mode {mode}",
            figure="step_bytes",
        ),
        Evidence(
            name="bytes a step, saved",
            value=exact - sent,
            unit="bytes",
            definition=f"that less the {megabytes_of(sent)} of a step in mode {mode}",
            figure="step_bytes",
        ),
    ]
    if math.isfinite(codec_s := codec_seconds(series)):
        evidence.append(
            Evidence(
                name="encoding and decoding a step",
                value=codec_s,
                unit="s",
                definition="on the slowest rank, measured with nothing beside it when the mode was chosen",
            )
        )
    costs = (("exact", cost_of_exact(series)), (f"mode {mode}", cost_in_mode(series)))
    return (*evidence, *(_cost_in_mode(name, cost) for name, cost in costs if cost is not None))


def _cost_in_mode(name: str, cost: ModeCost) -> Evidence:
    return Evidence(
        name=f"exposed exchange, {name}",
        value=cost.seconds,
        unit="s",
        definition=f"a step: {cost.origin}",
        figure="exchange",
    )


def check_evidence(series: Series) -> tuple[Evidence, ...]:
    """How far encoded gradients lay from the exact ones, where that was looked at."""
    checks = [mark.event for mark in series.marks if isinstance(mark.event, ExchangeChecked)]
    mode = encoded_mode(series)
    held = [check for check in checks if check.mode == mode and math.isfinite(check.error)]
    if not held:
        return ()
    errors = sorted(check.error for check in held)
    owed = sorted(check.owed for check in held)[len(held) // 2]
    return (
        Evidence(
            name=f"encoded gradients, off by (mode {mode})",
            value=errors[len(errors) // 2],
            unit="share",
            low=errors[0],
            high=errors[-1],
            definition="of the exact gradient's norm: median, least and most of steps that were looked at "
            f"({count(len(held))}); what is off is added to later steps, of which {percent(owed)} was owed. What that "
            "costs in loss was not measured",
        ),
    )


def link_evidence(capacity: Capacity) -> Evidence:
    """How fast the link between hosts is."""
    return Evidence(
        name="link",
        value=capacity.bytes_per_s,
        unit="bytes/s",
        definition=f"one direction, {capacity.origin}",
    )


def ordered_evidence(bytes_per_s: float) -> tuple[Evidence, ...]:
    """Speed that the slowest interface claims, where one does."""
    if math.isnan(bytes_per_s):
        return ()
    definition = (
        "as the interface agreed with the switch, one direction: ordered, not measured; nothing rests on it"
    )
    return (Evidence(name="link, nominal", value=bytes_per_s, unit="bytes/s", definition=definition),)


def carried_evidence(traffic: Traffic, *, figure: str) -> list[Evidence]:
    """What a host's interface carried for a step, in each direction."""
    return [
        Evidence(
            name=f"{traffic.host} {traffic.interface} {way} a step",
            value=value,
            unit="bytes",
            definition=f"sum of {traffic.samples:,} samples while training, divided by the steps",
            figure=figure,
        )
        for way, value in (("sent", traffic.sent_bytes), ("received", traffic.received_bytes))
    ]
