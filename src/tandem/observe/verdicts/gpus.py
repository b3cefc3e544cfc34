"""Were the GPUs fully used? By what they computed and what they waited for, not by their utilisation."""

import math

from tandem.observe.devices import Gauges, device_name, flops_utilisation, read_gauges, tokens_per_s
from tandem.observe.exchange import Exposure, measure_exchange
from tandem.observe.finding import Confidence, Evidence, Finding, Question, Verdict
from tandem.observe.numbers import percent
from tandem.observe.series.columns import Series
from tandem.observe.told import told_number
from tandem.observe.verdicts.network import judge as judge_network
from tandem.observe.verdicts.words import UTILISATION, seconds

__all__ = ["QUESTION", "judge"]

BUSY, IDLE = 0.90, 0.75
"""Shares of the step spent on the model's work: from here yes, below there no."""
WORTH = 0.35
"""Of the measured peak: devices that compute all the time and reach less are held up by small work."""
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
    verdict, confidence = _verdict(exposure, worth)
    device = device_name(series)
    lacks = (
        (math.isnan(worth), "the devices' peak, or the model's operations a token"),
        (not exposure.probes and exposure.ranks > 1, "steps with and without exchange (probes)"),
        (not exposure.split.is_complete, "logs of all ranks"),
        (not device, "what device it ran on"),
        (not gauges.gpus and device not in ("", "cpu"), "samples of the GPUs"),
    )
    return QUESTION.answer(
        verdict,
        confidence,
        _answer(exposure, verdict=verdict, worth=worth, gauges=gauges, device=device),
        evidence=(
            *_time_evidence(exposure),
            *_worth_evidence(series, exposure, worth),
            *_gauge_evidence(gauges),
        ),
        advice=_advice(exposure, verdict=verdict, worth=worth, gauges=gauges),
        missing=tuple(name for lacking, name in lacks if lacking),
    )


def _verdict(exposure: Exposure, worth: float) -> tuple[Verdict, Confidence]:
    busy = exposure.share(exposure.busy_s)
    doubt = max(exposure.share(exposure.high_s - exposure.network_s), 0.0)
    # Without probes computing may include slowing by the exchange; it is never more than was seen.
    low, high = busy - max(doubt, NEAR_BUSY), busy + NEAR_BUSY
    if busy < IDLE:
        return "no", "low" if high >= IDLE else _sure(exposure)
    if busy < BUSY:
        return "partly", "low" if low < IDLE or high >= BUSY else _sure(exposure)
    if math.isnan(worth):
        return "yes", "low"
    if worth < WORTH:
        return "partly", "low" if worth >= WORTH - NEAR_WORTH or low < IDLE else _sure(exposure)
    return "yes", "low" if low < BUSY or worth < WORTH + NEAR_WORTH else _sure(exposure)


def _sure(exposure: Exposure) -> Confidence:
    is_measured = exposure.split.is_complete and (exposure.probes or exposure.ranks == 1)
    return "high" if is_measured else "medium"


def _answer(exposure: Exposure, *, verdict: Verdict, worth: float, gauges: Gauges, device: str) -> str:
    busy = percent(exposure.share(exposure.busy_s))
    lead = {"yes": "Yes", "no": "No", "partly": "Partly"}[verdict]
    what = {
        "cpu": "the cores (there is no GPU in this run)",
        "": "the devices (which, the log does not say)",
    }.get(device, "the GPUs")
    text = f"{lead}: {what} spent {busy} of a step of {seconds(exposure.step_s)} computing{_waits(exposure)}."
    if math.isnan(worth):
        text += " How much of their peak that is was not measured."
    else:
        text += f" They did {percent(worth)} of the operations that they were measured to be able to do."
    if verdict == "partly" and exposure.share(exposure.busy_s) >= BUSY:
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
    )
    found = sorted(((exposure.share(value), name) for name, value in waits), reverse=True)
    named = [f"{percent(share)} for {name}" for share, name in found if share >= NOTABLE]
    return f" and waited {', '.join(named)}" if named else ""


def _advice(exposure: Exposure, *, verdict: Verdict, worth: float, gauges: Gauges) -> str:
    if verdict == "yes":
        held = not math.isnan(gauges.throttled) and gauges.throttled >= HELD_DOWN
        return (
            f"Clocks were held down in {percent(gauges.throttled)} of the time: see to power and cooling."
            if held
            else ""
        )
    cures = {
        exposure.network_s: _exchange_less(exposure),
        exposure.straggler_s: _straggler(exposure),
        exposure.data_s: "Data come too slowly: see to the disk and the loader's processes on each host.",
        exposure.other_s: "Much of the step is outside of the model: see what else the ranks' processes do.",
    }
    worst = max(cures)
    if exposure.share(worst) >= NOTABLE:
        return cures[worst]
    return "A larger batch for each device, or a larger model, would use it better." if worth < WORTH else ""


def _exchange_less(exposure: Exposure) -> str:
    if exposure.hosts == 1:
        return "Exchange less often: a larger batch, or fewer workers with more threads each."
    return "Exchange less often or fewer bytes: a larger batch, compressed gradients, a faster link."


def _straggler(exposure: Exposure) -> str:
    split = exposure.split
    counts = {rank: float((split.last == rank).mean()) for rank in set(split.last.tolist())}
    rank = max(counts, key=lambda each: counts[each])
    if counts[rank] < 0.5 or exposure.ranks < 2:
        return "Ranks wait for one another, now for this one, now for that: batches of more equal cost would help."
    cause = "its data come late" if exposure.is_data_late else "it is slower"
    return f"Rank {rank} arrives last in {percent(counts[rank])} of the steps ({cause}): see what else its host does."


def _time_evidence(exposure: Exposure) -> tuple[Evidence, ...]:
    rows = (
        ("computing", exposure.busy_s, "forward, backward (less what the exchange slows them) and optimiser"),
        ("waiting for the exchange", exposure.network_s, "the network's part; on one host the memory's"),
        ("waiting for the slowest rank", exposure.straggler_s, "what ranks wait beyond that"),
        ("waiting for data", exposure.data_s, "no batch was there"),
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
        ("clock held down", gauges.throttled, "samples in which power or heat limited the clock"),
    )
    return tuple(
        Evidence(name=name, value=value, unit="share", definition=meaning, figure="gpus")
        for name, value, meaning in rows
        if not math.isnan(value)
    )


def _imported(series: Series) -> Finding:
    utilisation = told_number(series, "observed_gpu_utilisation")
    told = (
        ""
        if math.isnan(utilisation)
        else f" The {percent(utilisation)} seen say nothing against it: {UTILISATION}."
    )
    evidence = _gauge_evidence(
        Gauges(gpus=0, utilisation=utilisation, memory=math.nan, power=math.nan, throttled=math.nan)
    )
    missing = ("phases of steps", "the devices' peak, or the model's operations a token")
    network = judge_network(series)
    if network.verdict == "yes":
        text = f"No: by arithmetic the link explains the step, so that the GPUs waited for it much of the time.{told}"
        return QUESTION.answer("no", network.confidence, text, evidence=evidence, missing=missing)
    text = f"Cannot tell: what the GPUs computed and what they waited for is not in the files.{told}"
    if told:
        text = text.replace("say nothing against it", "do not tell either")
    return QUESTION.cannot_tell(text, evidence=evidence, missing=missing)
