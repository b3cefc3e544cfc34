"""Was the network the bottleneck? By the time that a perfect network would save, never by utilisation."""

import math

from tandem.observe.exchange import Exposure, measure_exchange
from tandem.observe.finding import Confidence, Finding, Verdict
from tandem.observe.numbers import percent
from tandem.observe.ring import (
    Capacity,
    Traffic,
    WhatIf,
    gradient_bytes,
    link_capacity,
    ring_bytes,
    traffic_per_step,
    what_if,
)
from tandem.observe.series.columns import Series
from tandem.observe.verdicts.imported_network import judge_imported
from tandem.observe.verdicts.network_evidence import (
    PARTLY,
    QUESTION,
    RULE,
    YES,
    byte_evidence,
    exposed_evidence,
    other_evidence,
)
from tandem.observe.verdicts.words import byte_rate, megabytes_of, seconds

__all__ = ["QUESTION", "judge"]

FEW_STEPS = 30
NOTABLE = 0.10
"""Share of the step from which another wait is named."""
NEARLY_ALL = 0.9
"""Share of steps in which a rank waits for data from which the reader is sure to set the pace."""
SLOWER = 2.0
"""An exchange that takes so many times what the link's speed explains has another cause beside it."""

PROBES = "steps with and without exchange (probes)"


def judge(series: Series) -> Finding:
    """Judge by exposed communication and the step as it would be without."""
    if series.imported is not None:
        return judge_imported(series)
    exposure = measure_exchange(series)
    if (exposure.ranks if exposure is not None else _rank_count(series)) == 1:
        return _plain("no", "high", "No: one rank exchanges nothing with anybody.")
    if exposure is None:
        text = "Cannot tell: too few steps were logged with their phases."
        return _plain("cannot tell", "none", text, missing=("phases of steps",))
    return _judge(series, exposure)


def _rank_count(series: Series) -> int:
    return series.started.ranks if series.started is not None else series.ranks.ranks


def _judge(series: Series, exposure: Exposure) -> Finding:
    needed = ring_bytes(gradient_bytes(series), exposure.ranks)
    capacity = link_capacity(series) if exposure.hosts != 1 else None
    transfer_s = needed / capacity.bytes_per_s if capacity is not None and needed else math.nan
    other = what_if(exposure, transfer_s=transfer_s)
    verdict, confidence = _verdict(exposure)
    words = _Words(exposure, other=other, needed=needed, transfer_s=transfer_s, capacity=capacity)
    traffic = traffic_per_step(series) if exposure.hosts != 1 else ()
    return QUESTION.answer(
        verdict,
        confidence,
        words.answer(verdict),
        evidence=(
            *exposed_evidence(exposure),
            *other_evidence(other, exposure),
            *byte_evidence(needed, traffic=traffic, capacity=capacity, step_s=exposure.step_s),
        ),
        advice=words.advice(verdict),
        missing=_missing(series, exposure, traffic=traffic),
    )


def _class(share: float) -> Verdict:
    if share >= YES:
        return "yes"
    return "partly" if share >= PARTLY else "no"


def _verdict(exposure: Exposure) -> tuple[Verdict, Confidence]:
    if exposure.hosts == 1:
        return "no", "high"
    if exposure.saved_s < exposure.network_s:
        return _behind_reader(exposure)
    found = _class(exposure.share(exposure.network_s))
    ends = {_class(exposure.share(end)) for end in (exposure.low_s, exposure.high_s)}
    if not exposure.split.is_complete:
        # With a rank unheard of, its lateness and the network look alike.
        return (found, "medium") if ends == {found} else ("cannot tell", "none")
    # Readers that are late now and then may be close behind, and set the pace as soon as the network is faster.
    if found != _class(exposure.share(exposure.least_saved_s)):
        return found, "low"
    if exposure.probes:
        return found, _by_count(exposure) if ends == {found} else "low"
    return _without_probes(found, ends, exposure)


def _behind_reader(exposure: Exposure) -> tuple[Verdict, Confidence]:
    """The reader of data sets the pace, or would as soon as the network were faster."""
    is_sure = exposure.is_starved and exposure.split.reader.late >= NEARLY_ALL and exposure.split.is_complete
    return _class(exposure.share(exposure.saved_s)), "high" if is_sure else "low"


def _without_probes(found: Verdict, ends: set[Verdict], exposure: Exposure) -> tuple[Verdict, Confidence]:
    """The wait is a lower bound: above a border it is proof, and below one it says nothing unless the rest is small."""
    if ends == {found}:
        return found, _by_count(exposure) if found == "yes" else "medium"
    return ("cannot tell", "none") if found == "no" else (found, "low")


def _by_count(exposure: Exposure) -> Confidence:
    return "high" if len(exposure.split.step) >= FEW_STEPS else "medium"


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
    ) -> None:
        self._exposure, self._other = exposure, other
        self._needed, self._transfer_s, self._capacity = needed, transfer_s, capacity

    def answer(self, verdict: Verdict) -> str:
        each = self._exposure
        whole = f"of a step of {seconds(each.step_s)}"
        cost = f"{seconds(each.network_s)} ({percent(each.share(each.network_s))})"
        if verdict == "cannot tell" and each.split.is_complete:
            return (
                f"Cannot tell: ranks wait {cost} {whole} for the exchange of gradients, but by how much it slows the "
                f"computing beside it was not measured, and both may be {percent(each.share(each.high_s))}."
                f"{self._instead()}"
            )
        if verdict == "cannot tell":
            return (
                f"Cannot tell: only some of the {each.ranks} ranks were logged, so that waiting for a slow rank and "
                f"for the network look alike; {cost} {whole} are one or the other, or both.{self._instead()}"
            )
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
            f"would take {seconds(self._other.perfect_s)}{self._until()}.{self._reader()}{self._link()}"
            f"{self._instead()}"
        )

    def _until(self) -> str:
        return ", which the reader of data needs" if self._exposure.saved_s < self._exposure.network_s else ""

    def _reader(self) -> str:
        each = self._exposure
        if _class(each.share(each.least_saved_s)) == _class(each.share(each.saved_s)):
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
            return f"{text}: less than was waited, so something else slows the exchange too, such as other traffic."
        return f"{text}."

    def _instead(self) -> str:
        """What else the devices waited for, which is not the network."""
        each, found = self._exposure, []
        if self._is_notable(each.data_s):
            found.append(f"{percent(each.share(each.data_s))} are waiting for data")
        if self._is_notable(each.straggler_s):
            late = ", whose data come late" if each.is_data_late else ""
            found.append(f"{percent(each.share(each.straggler_s))} are waiting for the slowest rank{late}")
        return f" Not the network: {' and '.join(found)}." if found else ""

    def _is_notable(self, value: float) -> bool:
        return self._exposure.share(value) >= NOTABLE

    def advice(self, verdict: Verdict) -> str:
        each, other = self._exposure, self._other
        if each.hosts == 1:
            if not self._is_notable(each.network_s):
                return ""
            return (
                f"A batch twice the size gives {_gain(other.double_batch_gain)} tokens/s: the exchange between the "
                f"ranks stays the same."
            )
        if each.is_starved:
            return (
                "See to the reader first: the disk, and the cores that it has on each host. Then ask again."
            )
        if verdict in ("no", "cannot tell"):
            return ""
        return (
            f"At least this would come of it: a link twice as fast, or half of the bytes (gradients as bf16), "
            f"{seconds(other.double_rate_s)} a step ({_gain(each.step_s / other.double_rate_s)} tokens/s); a link ten "
            f"times as fast {seconds(other.tenfold_rate_s)} ({_gain(each.step_s / other.tenfold_rate_s)}); a batch "
            f"twice the size {_gain(other.double_batch_gain)} tokens/s, since its bytes stay the same."
        )


def _gain(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.0f} %"


def _missing(series: Series, exposure: Exposure, *, traffic: tuple[Traffic, ...]) -> tuple[str, ...]:
    if exposure.hosts == 1:
        return ()
    lacks = (
        (not exposure.probes, PROBES),
        (not exposure.split.is_complete, "logs of all ranks"),
        (not traffic, "samples of the interfaces"),
        (not series.links, "the link's speed before training"),
    )
    return tuple(name for lacking, name in lacks if lacking)


def _plain(
    verdict: Verdict, confidence: Confidence, answer: str, *, missing: tuple[str, ...] = ()
) -> Finding:
    return QUESTION.answer(
        verdict,
        confidence,
        answer,
        would_change=f"A run on several hosts whose steps are logged with their phases. The rule: {RULE}.",
        missing=missing,
        figure="exchange" if missing else "",
    )
