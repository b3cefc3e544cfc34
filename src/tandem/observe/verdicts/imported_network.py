"""Was the network the bottleneck of a run that another tool trained? By arithmetic, since nothing was measured."""

import math

from tandem.observe.confidence import Grounds, Kind
from tandem.observe.finding import Evidence, Finding, Verdict
from tandem.observe.numbers import percent
from tandem.observe.series.columns import Series
from tandem.observe.told import JUST, NEARLY, ToldLink, told_link
from tandem.observe.verdicts.network_evidence import QUESTION
from tandem.observe.verdicts.words import UTILISATION, bit_rate, byte_rate, megabytes_of, seconds

__all__ = ["doubt_seen", "judge_imported"]

FILLED = 0.8
"""The link explains the step where the bytes need that much of it."""
FULL = (0.75, JUST)
"""A rate that lies so between a common link and its speed is that link at its fullest."""
TWICE = 2 * JUST
"""A link told up to so many times too slow is still taken for full: two lines together, or half of the bytes."""
PARTLY = 0.10
COMMON_BITS = (1e9, 2.5e9, 10e9, 25e9, 40e9, 50e9, 100e9)
TWO_LINES_BITS = 2e9
SHOWN_BITS = (1e9, 10e9, 25e9)
PAIR = "the step with and without exchange, or how long each rank waits for it"
COUNTERS = "the interface's bytes in each direction, before and after some steps"
EXPERIMENT = (
    "Train some steps on one host alone, or with twice the batch: where the step hardly changes with the batch, "
    "or falls on one host, it was the network."
)
PROVEN = Grounds(kind=Kind.BOUND, lacks=(PAIR,))
"""The link cannot have been faster than ordered, or was seen full."""
LIKELY = Grounds(chance=0.6, kind=Kind.BOUND, lacks=(PAIR,))
ORDERED = Grounds(kind=Kind.NOMINAL, lacks=(PAIR,))
"""It rests on the link having delivered what was ordered."""
NOTHING = Grounds(chance=0.0)

RULE = (
    f"yes: the bytes of a step need at least {FILLED:.0%} of it on the link as told, or come to the rate of a full "
    f"link that was seen; no, with "
    f"low confidence: less than {PARTLY:.0%} of it, if the link delivered what was ordered. "
    "A link told too slow for the bytes is wrong, or the bytes "
    "are: up to twice, the likely ways out (two lines together, half of the bytes) leave it full, which is yes with "
    "low confidence; beyond that, or where a rate was seen that cannot be either, nothing rests on it".replace(
        "%", " %"
    )
)


def judge_imported(series: Series) -> Finding:
    """Compare what the bytes of a step need on the link with the step."""
    told = told_link(series)
    if told.ranks == 1:
        return _finding(told, "no", Grounds(), "No: one GPU exchanges nothing over any network.")
    if told.hosts == 1:
        text = f"No: all {told.ranks or 'its'} GPUs were in one host, and gradients crossed no network."
        return _finding(told, "no", Grounds(lacks=("phases of steps",)), text)
    if not told.ranks or not told.parameters or math.isnan(told.step_s):
        return _unknown(told)
    return _weigh(told)


def doubt_seen(told: ToldLink) -> str:
    """Why a rate that was seen cannot be what the link carried."""
    rate, least = told.seen_bytes_per_s, told.least_bytes_per_s
    is_bits = NEARLY <= 8 * rate / least <= TWICE
    swapped = f"MB/s were read as Mb/s ({byte_rate(8 * rate)} would be about right), " if is_bits else ""
    return (
        f"The {byte_rate(rate)} seen cannot be it: {megabytes_of(min(told.sizes))} in a step of "
        f"{seconds(told.step_s)} need {byte_rate(least)} in each direction. Perhaps {swapped}the display took a mean "
        f"over pauses, it was another interface, or fewer bytes crossed than the arithmetic says."
    )


def _weigh(told: ToldLink) -> Finding:
    if math.isnan(told.link_bytes_per_s):
        if math.isnan(told.seen_bytes_per_s) or told.is_seen_too_little:
            return _by_table(told)
        return _by_seen(told)
    if _is_full_as_ordered(told):
        return _by_full_link(told)
    return _by_slow_link(told) if told.is_link_too_slow else _by_link(told)


def _is_full_as_ordered(told: ToldLink) -> bool:
    """Whether the mean rate that was seen is the speed that was ordered; a moment's rate would carry too much."""
    low, high = FULL
    is_full = low * told.link_bytes_per_s <= told.seen_bytes_per_s <= high * told.link_bytes_per_s
    return is_full and max(told.sizes) >= FILLED * told.seen_bytes_per_s * told.step_s


def _by_full_link(told: ToldLink) -> Finding:
    """Two observations agree; where the bytes do not fit, fewer were sent than the arithmetic says."""
    rate, link = told.seen_bytes_per_s, told.link_bytes_per_s
    doubt = ""
    if told.is_link_too_slow:
        doubt = (
            f" At that rate {megabytes_of(rate * told.step_s)} cross in a step: fewer bytes were sent than the "
            f"arithmetic says."
        )
    text = (
        f"Yes: the {byte_rate(rate)} seen are {percent(rate / link)} of the {bit_rate(link)} ordered, so the link was "
        f"full for the whole step of {seconds(told.step_s)}. {_sum_up(told)}{doubt}{_busy(told)}"
    )
    return _finding(told, "yes", PROVEN, text)


def _by_link(told: ToldLink) -> Finding:
    """The link's speed is known: the bytes take so long on it, and no more than that can be saved."""
    needs = [size / told.link_bytes_per_s / told.step_s for size in told.sizes]
    least, most = min(needs), max(needs)
    step = seconds(told.step_s)
    need = f"{_sum_up(told)} On a link of {bit_rate(told.link_bytes_per_s)} they take "
    need += _times(told, told.link_bytes_per_s)
    if least >= FILLED:
        text = (
            f"Yes, by arithmetic: the link alone explains the step of {step}. {need}.{_misfit(told)}{_seen(told)}"
            f"{_busy(told)}"
        )
        return _finding(told, "yes", LIKELY if told.is_seen_too_little else PROVEN, text)
    if most < PARTLY:
        text = (
            f"No, if the link delivered what was ordered: of the step's {step} a faster network could then save "
            f"{percent(most)} at most. {need}.{_seen(told)}"
        )
        return _finding(told, "no", ORDERED, text)
    text = (
        f"Cannot tell: how much of the exchange computing hides was not measured. {need}, of the step's {step}."
        f"{_seen(told)}{_busy(told)}"
    )
    return _finding(told, "cannot tell", NOTHING, text)


def _by_slow_link(told: ToldLink) -> Finding:
    """The bytes cannot have crossed the link as told: what was told is wrong, or the bytes are."""
    rate, link, least = told.seen_bytes_per_s, told.link_bytes_per_s, told.least_bytes_per_s
    if told.is_seen_too_little:
        return _by_neither(told)
    if rate > TWICE * link:
        return _by_seen(told)
    step = seconds(told.step_s)
    cannot = (
        f"{_sum_up(told)} At the {bit_rate(link)} told they would take {_times(told, link)}, longer than the step of "
        f"{step}, which cannot be: the link carried at least {bit_rate(least)} in each direction, or fewer bytes "
        f"crossed it."
    )
    if math.isnan(rate) and least > TWICE * link:
        text = f"Cannot tell: the link told cannot be the one between the hosts. {cannot}"
        return _finding(told, "cannot tell", NOTHING, text)
    if math.isnan(rate):
        text = (
            f"Yes, most likely: the link as told is too slow for the step. {cannot} If it was not much faster than "
            f"told, it was full all the time; only a link much faster than told would make this a no.{_busy(told)}"
        )
        return _finding(told, "yes", LIKELY, text)
    text = f"Yes, by arithmetic: the link explains the step of {step}. {cannot}{_seen(told)}{_busy(told)}"
    is_full = rate <= JUST * link or rate / 2 >= FULL[0] * link
    return _finding(told, "yes", PROVEN if is_full else LIKELY, text)


def _by_neither(told: ToldLink) -> Finding:
    rate, link = told.seen_bytes_per_s, told.link_bytes_per_s
    text = (
        f"Cannot tell: the figures contradict one another. {_sum_up(told)} {doubt_seen(told)} The {bit_rate(link)} "
        f"told ({byte_rate(link)}) are too slow for them too. If both of these are right, far fewer bytes crossed and "
        f"took {percent(rate / link)} of the step; if the arithmetic is right, both are wrong. {_what_tells()}"
        f"{_busy(told)}"
    )
    return _finding(told, "cannot tell", NOTHING, text)


def _by_seen(told: ToldLink) -> Finding:
    """Only a rate was seen. At a mean rate the bytes fill the step whatever sets its pace: the link must be full."""
    rate, step = told.seen_bytes_per_s, seconds(told.step_s)
    carried = rate * told.step_s
    need = f"{_sum_up(told)} At the {byte_rate(rate)} seen they take {_times(told, rate)}"
    if max(told.sizes) < FILLED * carried:
        text = (
            f"Cannot tell: {byte_rate(rate)} come to {megabytes_of(carried)} in a step of {step}, more than the "
            f"gradients need: both directions were added up, or there was other traffic. {need}. {_what_tells()}"
        )
        return _finding(told, "cannot tell", NOTHING, text)
    if full := _full_link(told):
        text = (
            f"Yes, by arithmetic: the link explains the step of {step}. {need}. {_directions(told)} It rests on that "
            f"rate being a link at its fullest, as it is of {full}.{_busy(told)}"
        )
        return _finding(told, "yes", PROVEN, text)
    text = (
        f"Cannot tell: {byte_rate(rate)} ({bit_rate(rate)}) is not what any common link carries when it is full. "
        f"{need}, and the step took {step}; but so many bytes a step give that mean rate also where computing sets "
        f"the pace. The speed of the link would tell."
    )
    return _finding(told, "cannot tell", NOTHING, text)


def _by_table(told: ToldLink) -> Finding:
    rates = ", ".join(f"{_times(told, bits / 8)} at {bit_rate(bits / 8)}" for bits in SHOWN_BITS)
    why = "what the link carried or could carry is not in the log"
    doubt = ""
    if told.is_seen_too_little:
        why, doubt = "the rate that was seen does not fit the step", f" {doubt_seen(told)} {_what_tells()}"
    text = (
        f"Cannot tell: {why}. {_sum_up(told)} That would take {rates}; the step took {seconds(told.step_s)}.{doubt}"
        f"{_busy(told)}"
    )
    return _finding(told, "cannot tell", NOTHING, text)


def _what_tells() -> str:
    return f"What would tell: {COUNTERS}, and the link's speed."


def _unknown(told: ToldLink) -> Finding:
    lacking = [
        name
        for name, is_known in (
            ("the number of GPUs", told.ranks),
            ("the number of parameters", told.parameters),
            ("the time of a step", not math.isnan(told.step_s)),
        )
        if not is_known
    ]
    return _finding(
        told, "cannot tell", NOTHING, f"Cannot tell: the files do not have {' or '.join(lacking)}."
    )


def _full_link(told: ToldLink) -> str:
    """The link that the rate seen is at its fullest; empty for none."""
    rate = told.seen_bytes_per_s
    if name := _full(rate, bits=(*COMMON_BITS, TWO_LINES_BITS)):
        return name
    # Half a rate in each direction carries half of the bytes.
    each_way = _full(rate / 2) if told.is_mixed else ""
    return f"{each_way} with both directions added up" if each_way else ""


def _full(bytes_per_s: float, *, bits: tuple[float, ...] = COMMON_BITS) -> str:
    low, high = FULL
    for link in bits:
        share = bytes_per_s * 8 / link
        if low <= share <= high:
            name = "two lines of 1 Gb/s together" if link == TWO_LINES_BITS else bit_rate(link / 8)
            return f"{name} ({percent(share)})"
    return ""


def _sum_up(told: ToldLink) -> str:
    halves = (
        f" (as fp32; {megabytes_of(told.fp16_bytes)} if they were sent as fp16)"
        if told.is_mixed
        else " of fp32"
    )
    several = "" if told.hosts else ", if it ran on several hosts, which the files do not say"
    return (
        f"The gradients of {told.parameters:,} parameters, summed around a ring of {told.ranks}, put "
        f"{megabytes_of(told.fp32_bytes)}{halves} a step on each host's link, in each direction{several}."
    )


def _times(told: ToldLink, bytes_per_s: float) -> str:
    return " or ".join(seconds(size / bytes_per_s) for size in told.sizes)


def _directions(told: ToldLink) -> str:
    rate, half = told.seen_bytes_per_s, told.seen_bytes_per_s / 2
    if told.is_mixed:
        return (
            f"As fp32 they come to that rate ({bit_rate(rate)}) in one direction; as fp16 only if both directions were "
            f"added up, {byte_rate(half)} each way, and then take {seconds(told.fp16_bytes / half)}: either way the "
            f"link explains the step."
        )
    full = _full(half)
    return (
        f"This takes the {byte_rate(rate)} ({bit_rate(rate)}) for one direction; if both were added up, "
        f"{byte_rate(half)} each way carry only {megabytes_of(half * told.step_s)} in a step, half of those bytes"
        + (f", and fill {full}: either way the link explains the step." if full else ".")
    )


def _misfit(told: ToldLink) -> str:
    """Of two sizes that are possible, the greater may not fit."""
    most = max(told.sizes) / told.step_s
    if most <= JUST * told.link_bytes_per_s:
        return ""
    return f" As fp32 they do not fit into the step: that would need {bit_rate(most)}."


def _seen(told: ToldLink) -> str:
    rate, link = told.seen_bytes_per_s, told.link_bytes_per_s
    if math.isnan(rate):
        return ""
    if told.is_seen_too_little:
        return f" {doubt_seen(told)}"
    if rate <= JUST * link:
        return f" The {byte_rate(rate)} seen are {percent(rate / link)} of it, if that is one direction."
    half = rate / 2
    is_full = max(told.sizes) >= FILLED * rate * told.step_s and half >= FULL[0] * link
    return (
        f" The {byte_rate(rate)} seen are more than the {bit_rate(link)} ordered ({byte_rate(link)}): the link was "
        f"faster than ordered and that is one direction, in which the bytes take {_times(told, rate)}; or both "
        f"directions are added up there, {byte_rate(half)} each way, which is {percent(half / link)} of the link and "
        f"{megabytes_of(half * told.step_s)} in a step{': either way the link explains the step' if is_full else ''}."
    )


def _busy(told: ToldLink) -> str:
    if math.isnan(told.utilisation):
        return ""
    return f" The GPUs showed {told.utilisation:.0%}".replace("%", " %") + f", but {UTILISATION}."


def _finding(told: ToldLink, verdict: Verdict, grounds: Grounds, text: str) -> Finding:
    is_bound = verdict == "yes"
    lacks_speed = math.isnan(told.link_bytes_per_s) or told.is_link_too_slow
    return QUESTION.answer(
        verdict,
        # On how many hosts it ran may be no more than a guess.
        LIKELY if is_bound and not told.hosts else grounds,
        text,
        evidence=_evidence(told),
        advice=_advice(told) if is_bound else (EXPERIMENT if verdict == "cannot tell" else ""),
        would_change=f"A measurement of {PAIR}; the link's true speed in each direction. The rule: {RULE}.",
        missing=(PAIR, *(("the link's speed",) if lacks_speed else ())),
        figure="step_times",
    )


def _advice(told: ToldLink) -> str:
    return (
        f"A link that delivers 10 Gb/s needs {_times(told, 10e9 / 8)} for the same bytes; a larger batch for each "
        f"exchange needs no new link."
    )


def _evidence(told: ToldLink) -> tuple[Evidence, ...]:
    if not told.fp32_bytes:
        return ()
    found = [
        Evidence(
            name="bytes a step",
            value=told.fp32_bytes,
            unit="bytes",
            definition="predicted, in each direction of each host's link: 2 · (n − 1) / n · 4 bytes · parameters",
        ),
        Evidence(name="step", value=told.step_s, unit="s", definition="median, as the tool logged it"),
        Evidence(
            name="rate that the step needs",
            value=told.least_bytes_per_s,
            unit="bytes/s",
            definition="the fewest bytes possible / step, in each direction: less cannot have crossed the link",
        ),
    ]
    if told.is_mixed:
        found.append(
            Evidence(
                name="bytes a step as fp16",
                value=told.fp16_bytes,
                unit="bytes",
                definition="predicted, if the tool sent gradients in half precision",
            )
        )
    rates = [(f"{bit_rate(bits / 8)}", bits / 8) for bits in SHOWN_BITS]
    if not math.isnan(told.link_bytes_per_s):
        rates.insert(0, ("the link as told", told.link_bytes_per_s))
    if not math.isnan(told.seen_bytes_per_s) and not told.is_seen_too_little:
        rates.insert(0, ("the rate seen", told.seen_bytes_per_s))
    found += [
        Evidence(
            name=f"exchange at {name}",
            value=told.fp32_bytes / rate,
            unit="s",
            definition=f"bytes a step in fp32, divided by {byte_rate(rate)}",
        )
        for name, rate in rates
    ]
    return tuple(found)
