"""Was the network the bottleneck? By the time that a perfect network would save, never by utilisation."""

import math

from tandem.observe.exchange import Exposure, measure_exchange
from tandem.observe.finding import Confidence, Evidence, Finding, Verdict
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
from tandem.observe.verdicts.imported_network import QUESTION, judge_imported
from tandem.observe.verdicts.words import byte_rate, megabytes_of, seconds

__all__ = ["judge"]

YES, PARTLY = 0.25, 0.10
"""Shares of the step that a network without cost would save."""
FEW_STEPS = 30
NOTABLE = 0.10
"""Share of the step from which another wait is named."""
NEARLY_ALL = 0.9
"""Share of steps in which a rank waits for data from which the reader is sure to set the pace."""
SLOWER = 2.0
"""An exchange that takes so many times what the link's speed explains has another cause beside it."""

PROBES = "steps with and without exchange (probes)"
RULE = (
    f"yes: without the exchange the step would be at least {YES:.0%} shorter; partly: at least {PARTLY:.0%}; "
    "no: less".replace("%", " %")
)


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
    return Finding(
        number=5,
        key="network",
        question=QUESTION,
        verdict=verdict,
        confidence=confidence,
        answer=words.answer(verdict),
        evidence=(
            *_exposed(exposure),
            *_others(other, exposure),
            *_bytes(needed, traffic=traffic, capacity=capacity, step_s=exposure.step_s),
        ),
        advice=words.advice(verdict),
        would_change=f"The verdict is by this rule: {RULE}. Probes that say so over more steps would change it.",
        missing=_missing(series, exposure, traffic=traffic),
        figure="exchange",
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
    # Readers that are late now and then may set the pace in turn, which a faster network would not change.
    late = exposure.share(exposure.straggler_s + exposure.data_s) if exposure.is_data_late else 0.0
    if found != "no" and late >= NOTABLE:
        return found, "low"
    if exposure.probes:
        return found, _by_count(exposure) if ends == {found} else "low"
    return _without_probes(found, ends, exposure)


def _behind_reader(exposure: Exposure) -> tuple[Verdict, Confidence]:
    """The reader of data sets the pace, or would as soon as the network were faster."""
    is_sure = exposure.is_starved and exposure.split.reader.late >= NEARLY_ALL and exposure.split.is_complete
    return _class(exposure.share(exposure.saved_s)), "high" if is_sure else "low"


def _without_probes(found: Verdict, ends: set[Verdict], exposure: Exposure) -> tuple[Verdict, Confidence]:
    """The wait is a lower bound: above the upper border it is proof, and below it the rest is not known."""
    if found == "yes":
        return "yes", _by_count(exposure) if ends == {"yes"} else "low"
    return (found, "medium") if ends == {found} else ("cannot tell", "none")


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
            f"would take {seconds(self._other.perfect_s)}{self._until()}.{self._link()}{self._instead()}"
        )

    def _until(self) -> str:
        return ", which the reader of data needs" if self._exposure.saved_s < self._exposure.network_s else ""

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


def _exposed(exposure: Exposure) -> tuple[Evidence, ...]:
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
        Evidence(
            name="wait for the slowest rank",
            value=exposure.straggler_s,
            unit="s",
            definition="mean over ranks of what they waited beyond that; a faster network would not shorten it",
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


def _others(other: WhatIf, exposure: Exposure) -> tuple[Evidence, ...]:
    model = "by step = max(T, f·T + α + bytes / rate)"
    return (
        Evidence(
            name="step without network",
            value=other.perfect_s,
            unit="s",
            low=None if exposure.is_starved else exposure.step_s - exposure.high_s,
            high=None if exposure.is_starved else exposure.step_s - exposure.low_s,
            definition="an infinitely fast network: step − exposed communication; where the reader of data sets the "
            "pace, the step as it is",
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
            definition="against now: 2 · step / (step + computing + data), since the exchange stays as it is",
        ),
    )


def _bytes(
    needed: float, *, traffic: tuple[Traffic, ...], capacity: Capacity | None, step_s: float
) -> tuple[Evidence, ...]:
    found = []
    if needed:
        found.append(
            Evidence(
                name="bytes a step, predicted",
                value=needed,
                unit="bytes",
                definition="in each direction of each host's link: 2 · (n − 1) / n · bytes of gradients",
                figure="step_bytes",
            )
        )
    if capacity is not None:
        found.append(
            Evidence(
                name="link",
                value=capacity.bytes_per_s,
                unit="bytes/s",
                definition=f"one direction, {capacity.origin}",
            )
        )
    for each in traffic:
        for way, value in (("sent", each.sent_bytes), ("received", each.received_bytes)):
            found.append(
                Evidence(
                    name=f"{each.host} {each.interface} {way} a step",
                    value=value,
                    unit="bytes",
                    definition=f"sum of {each.samples:,} samples while training, divided by the steps",
                    figure="network",
                )
            )
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
    return Finding(
        number=5,
        key="network",
        question=QUESTION,
        verdict=verdict,
        confidence=confidence,
        answer=answer,
        evidence=(),
        advice="",
        would_change=f"A run on several hosts whose steps are logged with their phases. The rule: {RULE}.",
        missing=missing,
        figure="exchange" if missing else "",
    )
