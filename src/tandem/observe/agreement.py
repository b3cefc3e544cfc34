"""Answers of one report that cannot all hold: found in every report, and none of them stays sure.

The check knows nothing of how answers are made. It reads the evidence as a person would, and holds it against what
is true of every run: parts add up, a link carries no more than it can, one step has one time.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from tandem.observe.confidence import Grounds, confidence_of, reason_of
from tandem.observe.finding import Evidence, Finding
from tandem.observe.numbers import percent

__all__ = ["Contradiction", "contradictions", "reconcile"]

Findings: TypeAlias = Mapping[str, Finding]

APART = 0.05
"""Share by which two measurements of the same thing may differ."""
OVERFULL = 1.10
"""Share of what a link was seen to carry that its bytes may come to."""
EXPOSED = 0.25
"""Share of a step that the network takes with which devices cannot have been busy nearly all the time."""
FILE = "size of the file"
FASTER = ("faster link", "link twice as fast", "link ten times as fast")
"""How advice puts it that the network should be faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Answers that cannot all be right, by their keys, and why."""

    keys: tuple[str, ...]
    reason: str


def reconcile(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Lower the confidence of answers that contradict each other, and say why in each."""
    reasons: dict[str, list[str]] = {}
    for contradiction in contradictions(findings):
        for key in contradiction.keys:
            reasons.setdefault(key, []).append(contradiction.reason)
    return tuple(
        _lowered(finding, tuple(reasons[finding.key])) if finding.key in reasons else finding
        for finding in findings
    )


def contradictions(findings: Sequence[Finding]) -> tuple[Contradiction, ...]:
    """All that cannot hold together."""
    answers = {finding.key: finding for finding in findings}
    return tuple(contradiction for check in _CHECKS for contradiction in check(answers))


def _lowered(finding: Finding, reasons: tuple[str, ...]) -> Finding:
    if finding.verdict == "cannot tell":
        return finding
    grounds = replace(finding.grounds or Grounds(), contradicted=reasons)
    return replace(finding, grounds=grounds, confidence=confidence_of(grounds), doubt=reason_of(grounds))


def _wall_time(answers: Findings) -> Iterator[Contradiction]:
    """No part of the wall time is negative or longer than all of it."""
    whole = _value(answers, "duration", "wall time")
    finding = answers.get("duration")
    if finding is None or not whole > 0:
        return
    for item in finding.evidence:
        seconds = _number(item)
        if item.unit == "s" and item.figure == "time_split" and not -APART <= seconds / whole <= 1 + APART:
            reason = (
                f"{item.name} comes to {percent(seconds / whole)} of the wall time: clocks or logs disagree"
            )
            yield Contradiction(keys=("duration",), reason=reason)


def _one_step(answers: Findings) -> Iterator[Contradiction]:
    """The mean step of all answers is the same."""
    mean = _value(answers, "step_time", "mean")
    for key in ("network", "step_network"):
        step = _value(answers, key, "step")
        if not _alike(mean, step):
            reason = f"rank 0's steps take {mean:.3g} s in the mean, those of which all phases were logged {step:.3g} s"
            yield Contradiction(keys=("step_time", key), reason=reason)


def _one_throughput(answers: Findings) -> Iterator[Contradiction]:
    """Tokens a second are the same wherever they are told."""
    by_time, by_devices = _value(answers, "step_time", "throughput"), _value(answers, "gpus", "throughput")
    if not _alike(by_time, by_devices):
        reason = f"throughput is {by_time:,.0f} tokens/s by rank 0's steps and {by_devices:,.0f} by all ranks' phases"
        yield Contradiction(keys=("step_time", "gpus"), reason=reason)


def _parts_of_a_step(answers: Findings) -> Iterator[Contradiction]:
    """The parts of the mean step add up to it."""
    step = _value(answers, "step_network", "step")
    finding = answers.get("step_network")
    if finding is None or not step > 0:
        return
    parts = [
        _number(item)
        for item in finding.evidence
        if item.unit == "s" and item.name != "step" and item.figure == "anatomy"
    ]
    if parts and not _alike(sum(parts), step):
        reason = f"the parts of a step come to {sum(parts):.3g} s, the step to {step:.3g} s"
        yield Contradiction(keys=("step_network",), reason=reason)


def _whole_step(answers: Findings) -> Iterator[Contradiction]:
    """What devices did and waited for is all of the step, and no more."""
    finding = answers.get("gpus")
    shares = [
        _number(item)
        for item in (finding.evidence if finding is not None else ())
        if item.unit == "share" and item.figure == "anatomy"
    ]
    if shares and not abs(sum(shares) - 1) <= APART:
        reason = f"computing and waiting come to {percent(sum(shares))} of the step"
        yield Contradiction(keys=("gpus",), reason=reason)


def _bottleneck(answers: Findings) -> Iterator[Contradiction]:
    """The share of the step that the exchange costs is to be found in the step as it was timed."""
    mean, share = _value(answers, "step_time", "mean"), _value(answers, "network", "exposed share")
    cost = _value(answers, "network", "exposed communication")
    if mean > 0 and not abs(cost - share * mean) <= APART * mean and math.isfinite(cost + share):
        reason = f"the exchange is said to cost {percent(share)} and {cost:.3g} s of a step of {mean:.3g} s"
        yield Contradiction(keys=("network", "step_time"), reason=reason)


def _other_networks(answers: Findings) -> Iterator[Contradiction]:
    """A faster network makes no step longer, and saves no more than the exchange costs."""
    step, cost = _value(answers, "network", "step"), _value(answers, "network", "exposed communication")
    names = (
        "step without network",
        "step with ten times the link",
        "step with twice the link, or half the bytes",
    )
    steps = [step - cost, *(_value(answers, "network", name) for name in names), step]
    if any(slower < faster - APART * step for faster, slower in pairwise(steps)):
        reason = "what other networks would bring does not go with what the exchange costs"
        yield Contradiction(keys=("network",), reason=reason)


def _one_exchange(answers: Findings) -> Iterator[Contradiction]:
    """The exchange costs the same in both answers about it."""
    costs = _value(answers, "network", "exposed communication"), _value(answers, "step_network", "exchange")
    step = _value(answers, "network", "step")
    if step > 0 and abs(costs[0] - costs[1]) > APART * step:
        reason = f"the exchange costs {costs[0]:.3g} s a step by one answer and {costs[1]:.3g} s by another"
        yield Contradiction(keys=("network", "step_network"), reason=reason)


def _full_links(answers: Findings) -> Iterator[Contradiction]:
    """No link carries more than it can: neither what was counted nor what the exchange needs."""
    finding = answers.get("network")
    needed, rate = _value(answers, "network", "bytes a step, predicted"), _value(answers, "network", "link")
    step = _value(answers, "network", "step")
    if rate > 0 and needed / rate > OVERFULL * step:
        reason = f"the bytes of a step take {needed / rate:.3g} s on the link, the step {step:.3g} s"
        yield Contradiction(keys=("network", "step_network"), reason=reason)
    for item in finding.evidence if finding is not None else ():
        if item.unit == "share" and item.name.endswith(" full") and _number(item) > OVERFULL:
            reason = f"{item.name.removesuffix(' full')} carried {percent(_number(item))} of what it was seen to carry"
            yield Contradiction(keys=("network", "step_network"), reason=reason)


def _busy_and_waiting(answers: Findings) -> Iterator[Contradiction]:
    """Devices that compute nearly all the time wait for nothing for long."""
    is_idle = _share(answers, "network", "exposed share") >= EXPOSED and _verdict(answers, "network") == "yes"
    if is_idle and _verdict(answers, "gpus") == "yes":
        reason = "the devices cannot have computed nearly all the time and have waited a quarter of it"
        yield Contradiction(keys=("gpus", "network"), reason=reason)


def _learning(answers: Findings) -> Iterator[Contradiction]:
    """A loss that has risen by more than noise does not go on falling."""
    is_rising = _verdict(answers, "overfitting") == "yes"
    if is_rising and _verdict(answers, "trained") == "no" and answers["trained"].confidence != "low":
        reason = "the loss on the valid text cannot both have risen for good and go on falling"
        yield Contradiction(keys=("trained", "overfitting"), reason=reason)


def _advice(answers: Findings) -> Iterator[Contradiction]:
    """A faster network is no advice where it is not to blame."""
    if _verdict(answers, "network") != "no":
        return
    for finding in answers.values():
        if any(words in finding.advice for words in FASTER):
            reason = "a faster link is advised where the network is not the bottleneck"
            yield Contradiction(keys=tuple(dict.fromkeys((finding.key, "network"))), reason=reason)


def _checkpoint(answers: Findings) -> Iterator[Contradiction]:
    """The files of a checkpoint come to its size."""
    finding = answers.get("checkpoint_size")
    total = _value(answers, "checkpoint_size", "checkpoint")
    files = [_number(item) for item in finding.evidence if item.definition == FILE] if finding else []
    if files and total > 0 and not _alike(sum(files), total):
        reason = f"its files come to {sum(files):,.0f} bytes, the checkpoint to {total:,.0f}"
        yield Contradiction(keys=("checkpoint_size",), reason=reason)


_CHECKS: tuple[Callable[[Findings], Iterator[Contradiction]], ...] = (
    _wall_time,
    _one_step,
    _one_throughput,
    _parts_of_a_step,
    _whole_step,
    _bottleneck,
    _other_networks,
    _one_exchange,
    _full_links,
    _busy_and_waiting,
    _learning,
    _advice,
    _checkpoint,
)


def _verdict(answers: Findings, key: str) -> str:
    return answers[key].verdict if key in answers else ""


def _value(answers: Findings, key: str, name: str) -> float:
    """A number of an answer's evidence; nan where it has none of that name."""
    evidence = answers[key].evidence if key in answers else ()
    return next((_number(item) for item in evidence if item.name == name), math.nan)


def _share(answers: Findings, key: str, name: str) -> float:
    value = _value(answers, key, name)
    return value if math.isfinite(value) else 0.0


def _number(item: Evidence) -> float:
    return float(item.value) if isinstance(item.value, int | float) else math.nan


def _alike(one: float, other: float) -> bool:
    """Whether two numbers are the same but for what measuring them may do; also where one is not known."""
    if not (math.isfinite(one) and math.isfinite(other)):
        return True
    return abs(one - other) <= APART * max(abs(one), abs(other))
