"""Were the GPUs fully used? By what they computed and what they waited for, not by their utilisation."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tandem.observe.confidence import Decision, Grounds, Kind, Scale, decide, spread_over
from tandem.observe.devices import (
    Gauges,
    device_name,
    flops_utilisation,
    is_peak_known,
    read_gauges,
    tokens_per_s,
)
from tandem.observe.exchange import Exposure, measure_exchange
from tandem.observe.facts import fact_number
from tandem.observe.finding import Evidence, Finding, Question, Verdict, as_verdict
from tandem.observe.numbers import percent
from tandem.observe.series.columns import Series
from tandem.observe.shares import find_shares
from tandem.observe.statistics import Estimate
from tandem.observe.verdicts.network import judge as judge_network
from tandem.observe.verdicts.network import judge_exposure
from tandem.observe.verdicts.words import UTILISATION, seconds

__all__ = ["QUESTION", "judge"]

BUSY, IDLE = 0.90, 0.75
"""Shares of the step spent on the model's work: from here yes, below there no."""
WORTH = 0.35
"""Of the measured peak: devices that compute all the time and reach less are held up by small work."""
SCALE = Scale(borders=(IDLE, BUSY), answers=("no", "partly", "yes"))
NEAR_BUSY, NEAR_WORTH = 0.02, 0.03
NOTABLE = 0.05
HELD_DOWN = 0.10
RULE = (
    f"yes: at least {BUSY:.0%} of the step is computing, at {WORTH:.0%} or more of the measured peak; no: less than "
    f"{IDLE:.0%} of the step; partly: what is between".replace("%", " %")
)
QUESTION = Question(
    number=4,
    key="gpus",
    question="Were the GPUs fully used?",
    about="The share of a step in which the devices do the model's own work, and how much of their measured peak that "
    "is. Utilisation percent decides nothing: a kernel that waits for the network counts as busy.",
    would_change=f"Another split of the step, or another share of the peak. The rule: {RULE}.",
    figure="anatomy",
)


def judge(series: Series) -> Finding:
    """Judge by the share of the step that is computing and by model FLOPs utilisation."""
    if series.imported is not None:
        return _imported(series)
    exposure = measure_exchange(series)
    if exposure is None:
        text = "Cannot tell: too few steps were logged with their phases."
        return QUESTION.cannot_tell(text, missing=("phases of steps",))
    worth, gauges = flops_utilisation(series, exposure), read_gauges(series)
    device = device_name(series)
    lacks = (
        (not is_peak_known(worth), "the devices' peak, or the model's operations a token"),
        (not exposure.probes and exposure.ranks > 1, "steps with and without exchange (probes)"),
        (exposure.split.rank_share < 1, "logs of all ranks for all of the time"),
        (not device, "what device it ran on"),
        (not gauges.gpus and device not in ("", "cpu"), "samples of the GPUs"),
    )
    missing = tuple(name for is_lacking, name in lacks if is_lacking)
    decision = _decide(exposure, worth)
    verdict = as_verdict(decision.answer)
    return QUESTION.answer(
        verdict,
        decision.grounds,
        _answer(exposure, verdict=verdict, worth=worth, gauges=gauges, device=device),
        evidence=(
            *_time_evidence(exposure),
            *_share_evidence(series),
            *_worth_evidence(series, exposure, worth),
            *_gauge_evidence(gauges),
        ),
        advice=_advice(
            exposure, verdict=verdict, worth=worth, gauges=gauges, is_even=_is_even(series.recipe)
        ),
        missing=missing,
    )


def _decide(exposure: Exposure, worth: float) -> Decision:
    """By the share of the training time that is computing, then by how much of the peak that is."""
    by_time = _by_time(exposure)
    if by_time.answer != "yes":
        return by_time
    if not is_peak_known(worth):
        # Whether devices that compute all the time are well used rests on their peak.
        return replace(by_time, grounds=replace(by_time.grounds, kind=Kind.ASSUMED))
    by_worth = decide(
        Scale(borders=(WORTH,), answers=("partly", "yes")),
        Estimate(value=worth, low=worth - NEAR_WORTH, high=worth + NEAR_WORTH),
    )
    if by_worth.grounds.chance < by_time.grounds.chance:
        grounds = replace(by_time.grounds, chance=by_worth.grounds.chance)
        return Decision(answer=by_worth.answer, grounds=grounds)
    return replace(by_time, answer=by_worth.answer)


def _by_time(exposure: Exposure) -> Decision:
    busy, known = exposure.share(exposure.busy_s), exposure.split.rank_share
    # Without probes computing may include slowing by the exchange; it is never more than was seen.
    doubt = max(exposure.share(exposure.high_s - exposure.network_s), NEAR_BUSY)
    # What probes say the exchange slows it by may be less than they say.
    more = max(exposure.share(exposure.slowed_doubt_s), NEAR_BUSY)
    seen = Estimate(value=busy, low=busy - doubt, high=min(1.0, busy + more))
    estimate = spread_over(seen, known)
    is_proven = SCALE.answer_of(estimate.high) == SCALE.answer_of(busy) == "no"
    kind = Kind.MEASURED
    if not exposure.probes and exposure.ranks > 1:
        kind = Kind.BOUND if is_proven else Kind.ASSUMED
    with_stalls = SCALE.answer_of(exposure.share(exposure.busy_s + exposure.stalled_s))
    lacks = (
        (not exposure.probes and exposure.ranks > 1, "steps with and without exchange (probes)"),
        (with_stalls != SCALE.answer_of(busy), "what held up computing in its longest steps"),
    )
    missing = tuple(name for is_lacking, name in lacks if is_lacking)
    return decide(SCALE, estimate, kind=kind, coverage=known, lacks=missing)


def _answer(exposure: Exposure, *, verdict: Verdict, worth: float, gauges: Gauges, device: str) -> str:
    busy = percent(exposure.share(exposure.busy_s))
    lead = {"yes": "Yes", "no": "No", "partly": "Partly", "cannot tell": "Cannot tell"}[verdict]
    what = {
        "cpu": "the cores (there is no GPU in this run)",
        "": "the devices (which, the log does not say)",
    }.get(device, "the GPUs")
    text = f"{lead}: {what} spent {busy} of a step of {seconds(exposure.step_s)} computing{_waits(exposure)}."
    if exposure.split.rank_share < 1:
        text += f" That is told from {percent(exposure.split.rank_share)} of the ranks' time; the rest was not logged."
    if math.isnan(worth):
        text += " How much of their peak that is was not measured."
    elif not is_peak_known(worth):
        text += (
            f" They did {percent(worth)} of what was measured as their peak, so that something else kept them busy "
            "while it was measured: it says nothing."
        )
    else:
        text += f" They did {percent(worth)} of the operations that they were measured to be able to do."
    if verdict == "partly" and is_peak_known(worth) and exposure.share(exposure.busy_s) >= BUSY:
        text += (
            " They are busy all the time but with work too small or too scattered for them: a small model or small "
            "batches cannot fill such a device."
        )
    if not math.isnan(gauges.utilisation):
        text += f" Their utilisation read {percent(gauges.utilisation)}, but {UTILISATION}."
    return text


def _waits(exposure: Exposure) -> str:
    waits = (
        ("the network" if exposure.hosts > 1 else "the exchange between ranks", exposure.network_s),
        ("the slowest rank", exposure.straggler_s),
        ("data", exposure.data_s),
        ("whatever held them up while they computed", exposure.stalled_s),
    )
    found = sorted(((exposure.share(value), name) for name, value in waits), reverse=True)
    named = [f"{percent(share)} for {name}" for share, name in found if share >= NOTABLE]
    return f" and waited {', '.join(named)}" if named else ""


def _is_even(recipe: Mapping[str, object]) -> bool:
    """Whether the recipe orders equal shares for all ranks."""
    batch = recipe.get("batch")
    return isinstance(batch, Mapping) and batch.get("shares") == "even"


def _advice(exposure: Exposure, *, verdict: Verdict, worth: float, gauges: Gauges, is_even: bool) -> str:
    if verdict == "yes":
        held = not math.isnan(gauges.throttled) and gauges.throttled >= HELD_DOWN
        return (
            f"Heat or another fault held clocks down in {percent(gauges.throttled)} of the time: see to cooling and "
            "the power supply."
            if held
            else ""
        )
    cures = [
        (exposure.straggler_s, _straggler(exposure, is_even=is_even)),
        (exposure.data_s, "Data come too slowly: see to the disk and the loader's processes on each host."),
        (
            exposure.other_s,
            "Much of the step is outside of the model: see what else the ranks' processes do.",
        ),
        (exposure.stalled_s, "Ranks stand still while they compute: see what else runs on their hosts."),
    ]
    # Where the network is not to blame, a faster one is no advice.
    if exposure.hosts == 1 or judge_exposure(exposure).answer in {"yes", "partly"}:
        cures.append((exposure.network_s, _exchange_less(exposure)))
    cost, cure = max(cures)
    if exposure.share(cost) >= NOTABLE:
        return cure
    is_small = is_peak_known(worth) and worth < WORTH
    return "A larger batch for each device, or a larger model, would use it better." if is_small else ""


def _exchange_less(exposure: Exposure) -> str:
    if exposure.hosts == 1:
        return "Exchange less often: a larger batch (batch.target_tokens), or fewer workers (--workers)."
    return "Exchange less often: a larger batch (batch.target_tokens); or a faster link."


def _straggler(exposure: Exposure, *, is_even: bool) -> str:
    split = exposure.split
    # By the time that was waited for it: a rank that seldom stops, and long, costs more than one that is often last.
    waited = np.bincount(split.last, weights=split.straggler_s)
    rank = int(waited.argmax())
    share = float(waited[rank] / max(waited.sum(), 1e-12))
    if share < 0.5 or exposure.ranks < 2:
        if exposure.is_data_late:
            return "Ranks wait for those whose data come late: see to the disk and the loader's processes on each host."
        return "Ranks wait for one another, now for this one, now for that: batches of more equal cost would help."
    cause = "its data come late" if exposure.is_data_late else "it is slower"
    less = "; batch.shares=auto would give it less to do" if is_even and not exposure.is_data_late else ""
    return f"{percent(share)} of that time is waiting for rank {rank} ({cause}): see what else its host does{less}."


def _time_evidence(exposure: Exposure) -> tuple[Evidence, ...]:
    rows = (
        ("computing", exposure.busy_s, "forward, backward (less what the exchange slows them) and optimiser"),
        (
            "waiting for the exchange",
            exposure.network_s + exposure.inner_s,
            "the network's part; on one host the memory's",
        ),
        ("waiting for the slowest rank", exposure.straggler_s, "what ranks wait beyond that"),
        ("waiting for data", exposure.data_s, "no batch was there"),
        ("standstill", exposure.stalled_s, "forward and backward beyond twice a rank's usual time"),
        ("other", exposure.other_s, "what has no name"),
    )
    return tuple(
        Evidence(
            name=name,
            value=exposure.share(value),
            unit="share",
            definition=f"of the step, mean over ranks and {len(exposure.split.step):,} steady steps: {meaning}",
            figure="anatomy",
        )
        for name, value, meaning in rows
    )


def _share_evidence(series: Series) -> tuple[Evidence, ...]:
    changed = find_shares(series.marks)
    if changed is None:
        return ()
    by_share = sorted(zip(changed.shares, changed.tokens_per_s, range(len(changed.shares)), strict=False))
    return tuple(
        Evidence(
            name=f"{which} share of an update",
            value=share,
            unit="share",
            definition=f"rank {rank}'s, from step {changed.first_step:,} on, by its speed in forward and backward: "
            f"{speed:,.0f} target tokens/s",
            figure="anatomy",
        )
        for which, (share, speed, rank) in (("largest", by_share[-1]), ("least", by_share[0]))
        if math.isfinite(speed)
    )


def _worth_evidence(series: Series, exposure: Exposure, worth: float) -> tuple[Evidence, ...]:
    speed = Evidence(
        name="throughput",
        value=tokens_per_s(series, exposure),
        unit="tokens/s",
        definition="target tokens of all ranks, without padding, by the time of the same steps",
        figure="throughput",
    )
    if math.isnan(worth):
        return (speed,)
    return (
        speed,
        Evidence(
            name="model FLOPs utilisation",
            value=worth,
            unit="share",
            definition="operations that the model needs for a target token · tokens/s / (what each device was measured "
            f"to do in large products, all together); {RULE}",
            figure="gpus",
        ),
    )


def _gauge_evidence(gauges: Gauges) -> tuple[Evidence, ...]:
    rows = (
        ("utilisation", gauges.utilisation, UTILISATION),
        ("memory", gauges.memory, "of the fullest GPU at its fullest"),
        ("power", gauges.power, "of the limit, mean; a device that waits draws less"),
        (
            "clock held down",
            gauges.throttled,
            "samples in which heat, the power supply or the hardware did so",
        ),
        (
            "at the power limit",
            gauges.capped,
            "samples in which the card's own limit set the clock: no fault",
        ),
        (
            "clock at the power limit",
            gauges.capped_clock,
            "mean in these samples, of the highest that the card had",
        ),
    )
    return tuple(
        Evidence(name=name, value=value, unit="share", definition=meaning, figure="gpus")
        for name, value, meaning in rows
        if not math.isnan(value)
    )


def _imported(series: Series) -> Finding:
    utilisation = fact_number(series, "observed_gpu_utilisation")
    told = (
        ""
        if math.isnan(utilisation)
        else f" The {percent(utilisation)} seen say nothing against it: {UTILISATION}."
    )
    evidence = _gauge_evidence(Gauges(gpus=0, utilisation=utilisation))
    missing = ("phases of steps", "the devices' peak, or the model's operations a token")
    network = judge_network(series)
    if network.verdict == "yes":
        text = f"No: by arithmetic the link explains the step, so that the GPUs waited for it much of the time.{told}"
        # It says no more than the answer about the network.
        grounds = network.grounds or Grounds(kind=Kind.ASSUMED)
        return QUESTION.answer("no", grounds, text, evidence=evidence, missing=missing)
    text = f"Cannot tell: what the GPUs computed and what they waited for is not in the files.{told}"
    if told:
        text = text.replace("say nothing against it", "do not tell either")
    return QUESTION.cannot_tell(text, evidence=evidence, missing=missing)
