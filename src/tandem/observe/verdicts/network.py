"""Was the network the bottleneck? By the time that a perfect network would save, never by utilisation."""

import math
from dataclasses import replace

from tandem.observe.confidence import Decision, Grounds, Kind, Scale, decide
from tandem.observe.exchange import Exposure, measure_exchange
from tandem.observe.exchange_mode import step_bytes
from tandem.observe.finding import Finding, Verdict, as_verdict
from tandem.observe.numbers import percent
from tandem.observe.ring import (
    Capacity,
    Traffic,
    WhatIf,
    link_capacity,
    ordered_link,
    traffic_per_step,
    what_if,
)
from tandem.observe.series.columns import Series
from tandem.observe.statistics import Estimate
from tandem.observe.verdicts.imported_network import judge_imported
from tandem.observe.verdicts.network_evidence import (
    PARTLY,
    QUESTION,
    RULE,
    YES,
    byte_evidence,
    check_evidence,
    exposed_evidence,
    mode_evidence,
    ordered_evidence,
    other_evidence,
)
from tandem.observe.verdicts.network_modes import Modes
from tandem.observe.verdicts.words import byte_rate, megabytes_of, seconds

__all__ = ["QUESTION", "judge", "judge_exposure"]

ALL = 0.9995
"""Share of the time from which on probes speak for all of it."""

FEW_STEPS = 30
NOTABLE = 0.10
"""Share of the step from which another wait is named."""
CLOCKS = 0.015
"""Share of the step by which the phases of a step may be off."""
NEARLY_ALWAYS = 0.9
"""Share of steps in which a rank waits for data from which the reader is sure to set the pace."""
RATHER = 0.6
"""Chance of an answer that a reader of data close behind may change."""
SCALE = Scale(borders=(PARTLY, YES), answers=("no", "partly", "yes"))
SLOWER = 2.0
"""An exchange that takes so many times what the link's speed explains has another cause beside it."""

PROBES = "steps with and without exchange (probes)"
LONG_WAITS = (
    "what held up the exchange in its longest waits: the network, or a rank that stood still while it waited"
)


def judge(series: Series) -> Finding:
    """Judge by exposed communication and the step as it would be without."""
    if series.imported is not None:
        return judge_imported(series)
    exposure = measure_exchange(series)
    if (exposure.ranks if exposure is not None else _rank_count(series)) == 1:
        return _plain("No: one rank exchanges nothing with anybody.")
    if exposure is None:
        text = "Cannot tell: too few steps were logged with their phases."
        return QUESTION.cannot_tell(text, missing=("phases of steps",))
    return _judge(series, exposure)


def _rank_count(series: Series) -> int:
    return series.started.ranks if series.started is not None else series.ranks.ranks


def _judge(series: Series, exposure: Exposure) -> Finding:
    needed = step_bytes(series, exposure.ranks)
    traffic = traffic_per_step(series) if exposure.hosts != 1 else ()
    capacity = link_capacity(series, traffic) if exposure.hosts != 1 else None
    transfer_s = needed / capacity.bytes_per_s if capacity is not None and needed else math.nan
    other = what_if(exposure, transfer_s=transfer_s)
    decision = judge_exposure(exposure)
    words = _Words(
        exposure, other=other, needed=needed, transfer_s=transfer_s, capacity=capacity, modes=Modes.of(series)
    )
    verdict = as_verdict(decision.answer)
    return QUESTION.answer(
        verdict,
        decision.grounds,
        words.answer(verdict),
        evidence=(
            *exposed_evidence(exposure),
            *other_evidence(other, exposure),
            *byte_evidence(needed, traffic=traffic, capacity=capacity, step_s=exposure.step_s),
            *mode_evidence(series, exposure.ranks),
            *check_evidence(series),
            *ordered_evidence(ordered_link(series) if exposure.hosts != 1 else math.nan),
        ),
        advice=words.advice(verdict),
        missing=_missing(series, exposure, traffic=traffic),
    )


def judge_exposure(exposure: Exposure) -> Decision:
    """The answer by the share of the training time that a network without cost would save."""
    if exposure.hosts == 1:
        # Where all ranks are on one host is a fact that their logs tell.
        return Decision(answer="no", grounds=Grounds())
    if exposure.split.reader.is_shown and exposure.saved_s < exposure.network_s:
        return _behind_reader(exposure)
    estimate = _estimate(exposure)
    kind = Kind.MEASURED
    if not exposure.probes:
        # The wait is a lower bound: it proves that the cost is above a border, and nothing else.
        is_proven = SCALE.answer_of(estimate.low) == "yes"
        kind = Kind.BOUND if is_proven else Kind.ASSUMED
    if _rests_on_long_waits(exposure) or (exposure.hosts == 0 and SCALE.answer_of(estimate.high) != "no"):
        kind = Kind.ASSUMED
    decision = decide(SCALE, estimate, kind=kind, coverage=exposure.coverage, lacks=_lacks(exposure))
    if not exposure.split.is_complete and decision.answer != "no":
        # The least wait of the ranks that were logged is only an upper end: the others may have arrived later.
        return replace(decision, answer="cannot tell")
    return _beside_reader(exposure, decision)


def _beside_reader(exposure: Exposure, decision: Decision) -> Decision:
    """Readers that are late often, or close behind, may set the pace as soon as the network is faster."""
    least_s = min(exposure.least_saved_s, exposure.network_s - exposure.late_data_s)
    if decision.answer in {"cannot tell", SCALE.answer_of(exposure.share(least_s))}:
        return decision
    grounds = replace(decision.grounds, chance=min(decision.grounds.chance, RATHER))
    return Decision(answer=SCALE.answer_of(exposure.share(exposure.saved_s)), grounds=grounds)


def _estimate(exposure: Exposure) -> Estimate:
    value, low, high = (
        exposure.share(seconds) for seconds in (exposure.network_s, exposure.low_s, exposure.high_s)
    )
    return Estimate(value=value, low=max(0.0, min(low, value - CLOCKS)), high=max(high, value + CLOCKS))


def _rests_on_long_waits(exposure: Exposure) -> bool:
    """Whether waits of many steps' length decide: a host that stood still while it waited has logged the same."""
    without = SCALE.answer_of(exposure.share(exposure.network_s - exposure.long_wait_s))
    return without != SCALE.answer_of(exposure.share(exposure.network_s))


def _lacks(exposure: Exposure) -> tuple[str, ...]:
    """What the answer would need to be sure."""
    lacks = (
        (not exposure.probes, PROBES),
        (len(exposure.split.step) < FEW_STEPS, f"at least {FEW_STEPS} steps"),
        (_rests_on_long_waits(exposure), LONG_WAITS),
        (exposure.hosts == 0, "on which hosts the ranks were"),
    )
    return tuple(name for is_lacking, name in lacks if is_lacking)


def _behind_reader(exposure: Exposure) -> Decision:
    """The reader of data sets the pace, or would as soon as the network were faster."""
    late = exposure.split.reader.late
    is_shown = exposure.is_starved and late >= NEARLY_ALWAYS
    return Decision(
        answer=SCALE.answer_of(exposure.share(exposure.saved_s)),
        grounds=Grounds(chance=late if is_shown else RATHER, coverage=exposure.split.heard),
    )


class _Words:
    """Sentences about one exposure."""

    def __init__(
        self,
        exposure: Exposure,
        *,
        other: WhatIf,
        needed: float,
        transfer_s: float,
        capacity: Capacity | None,
        modes: Modes,
    ) -> None:
        self._exposure, self._other, self._modes = exposure, other, modes
        self._needed, self._transfer_s, self._capacity = needed, transfer_s, capacity

    def answer(self, verdict: Verdict) -> str:
        each = self._exposure
        whole = f"of a step of {seconds(each.step_s)}"
        cost = f"{seconds(each.network_s)} ({percent(each.share(each.network_s))})"
        if verdict == "cannot tell":
            return f"{self._unknown(cost, whole)}{self._instead()}"
        if each.hosts == 1:
            return (
                f"No: all {each.ranks} ranks are on one host and no network is between them. They exchange gradients "
                f"through its memory, which costs {cost} {whole}.{self._instead()}"
            )
        if each.is_starved:
            return (
                f"No: the reader of data sets the pace. In {percent(each.split.reader.late)} of the steps some rank "
                f"waits for data, and the longer the shorter the step before was. The exchange costs {cost} {whole}, "
                f"but a faster network would save nothing before the data come faster.{self._instead()}"
            )
        bound = "" if each.probes else "at least "
        lead = {"yes": "Yes", "partly": "Partly", "no": "No"}[verdict]
        return (
            f"{lead}: {bound}{cost} {whole} are the exchange of gradients; with a network that takes no time a step "
            f"would take {seconds(self._other.perfect_s)}{self._until()}.{self._part()}{self._long()}{self._reader()}"
            f"{self._link()}{self._modes.answer()}{self._instead()}"
        )

    def _unknown(self, cost: str, whole: str) -> str:
        each = self._exposure
        if not each.split.is_complete:
            return (
                f"Cannot tell: all {each.ranks} ranks were logged for {percent(each.split.heard)} of the time only, so "
                f"that waiting for a slow rank and for the network look alike; {cost} {whole} are one or the other, "
                f"or both."
            )
        between = (
            f"it may be anything from {percent(each.share(each.low_s))} to {percent(each.share(each.high_s))}"
        )
        if each.probes:
            heard = f"{percent(each.coverage)} of the time"
            speak = "differ" if each.coverage >= ALL else f"speak for {heard} only"
            return (
                f"Cannot tell: the exchange of gradients costs about {cost} {whole}, but the probes {speak}, and over "
                f"all {between}, on both sides of what the verdict turns on."
            )
        return (
            f"Cannot tell: ranks wait {cost} {whole} for the exchange of gradients, but by how much it slows the "
            f"computing beside it was not measured: {between}."
        )

    def _until(self) -> str:
        each = self._exposure
        if each.saved_s >= each.network_s:
            return ""
        needed = ", which the reader of data needs"
        if each.split.reader.is_shown:
            return needed
        return (
            f"{needed} if it works ahead, as its waits in {percent(each.split.reader.late)} of the steps look"
        )

    def _part(self) -> str:
        """For how much of the time there was a network at all."""
        split = self._exposure.split
        shares = split.step_s * (split.hosts != 1)
        part = float(shares.sum() / split.step_s.sum())
        return "" if part == 1 else f" All ranks were on one host for {percent(1 - part)} of the time."

    def _long(self) -> str:
        share = self._exposure.share(self._exposure.long_wait_s)
        if share < NOTABLE / 2:
            return ""
        return (
            f" {percent(share)} lie in waits that last as long as many steps: something stalls now and then."
        )

    def _reader(self) -> str:
        each = self._exposure
        if SCALE.answer_of(each.share(each.least_saved_s)) == SCALE.answer_of(each.share(each.saved_s)):
            return ""
        return (
            f" But data came late in {percent(each.split.reader.late)} of the steps; if their reader is as close "
            f"behind as these waits look, a step would take {seconds(each.step_s - each.least_saved_s)}."
        )

    def _link(self) -> str:
        if self._capacity is None or math.isnan(self._transfer_s):
            return ""
        text = (
            f" Its {megabytes_of(self._needed)} in each direction need {seconds(self._transfer_s)} at "
            f"{byte_rate(self._capacity.bytes_per_s)}, {self._capacity.origin}"
        )
        if self._exposure.wait_s > SLOWER * self._transfer_s and self._is_notable(self._exposure.wait_s):
            return (
                f"{text}: less than was waited, so the link was slower than that, or something else slows the exchange "
                f"too, such as other traffic."
            )
        return f"{text}."

    def _instead(self) -> str:
        """What else the devices waited for, which is not the network."""
        each, found = self._exposure, []
        if self._is_notable(each.data_s):
            found.append(f"{percent(each.share(each.data_s))} are waiting for data")
        if self._is_notable(each.straggler_s):
            late = ", whose data come late" if each.is_data_late else ""
            found.append(f"{percent(each.share(each.straggler_s))} are waiting for the slowest rank{late}")
        if self._is_notable(each.stalled_s):
            found.append(f"{percent(each.share(each.stalled_s))} are standstills while computing")
        return f" Not the network: {' and '.join(found)}." if found else ""

    def _is_notable(self, value: float) -> bool:
        return self._exposure.share(value) >= NOTABLE

    def advice(self, verdict: Verdict) -> str:
        each, other = self._exposure, self._other
        if each.hosts == 1:
            if not self._is_notable(each.network_s):
                return ""
            return (
                f"A batch twice the size (batch.target_tokens) gives {_gain(other.double_batch_gain)} tokens/s: the "
                f"exchange between the ranks stays the same."
            )
        if each.is_starved or (verdict == "no" and SCALE.answer_of(each.share(each.network_s)) != "no"):
            return (
                "See to the reader first: the disk, and the cores that it has on each host. Then ask again."
            )
        if verdict in ("no", "cannot tell"):
            return ""
        return (
            f"At least this would come of it: a link twice as fast {seconds(other.double_rate_s)} a step "
            f"({_gain(each.step_s / other.double_rate_s)} tokens/s); a link ten times as fast "
            f"{seconds(other.tenfold_rate_s)} ({_gain(each.step_s / other.tenfold_rate_s)})."
            f"{self._modes.advice(each, transfer_s=self._transfer_s)}"
        )


def _gain(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.0f} %"


def _missing(series: Series, exposure: Exposure, *, traffic: tuple[Traffic, ...]) -> tuple[str, ...]:
    if exposure.hosts == 1:
        return ()
    lacks = (
        (exposure.split.heard < 1, "logs of all ranks for all of the time"),
        (not traffic, "samples of the interfaces"),
        (not series.links, "the link's speed before training"),
    )
    return (*_lacks(exposure), *(name for is_lacking, name in lacks if is_lacking))


def _plain(answer: str) -> Finding:
    return QUESTION.answer(
        "no",
        Grounds(),
        answer,
        would_change=f"A run on several hosts whose steps are logged with their phases. The rule: {RULE}.",
        figure="",
    )
