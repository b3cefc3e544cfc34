"""How well the models of runs translate: BLEU and loss on the valid text, at the best, at the end, at equal places."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, sqrt

import numpy as np

from tandem.observe.compare.comparable import (
    Scored,
    bleu_objection,
    is_measured,
    loss_objection,
    token_objection,
)
from tandem.observe.compare.judgement import (
    CHANCE,
    Judgement,
    Outcome,
    Question,
    Value,
    judge,
    judged_runs,
    stretch,
    unjudged,
)
from tandem.observe.compare.place import AGAINST, Against, evaluation_places
from tandem.observe.numbers import count, duration, short_count
from tandem.observe.series.columns import Evaluation, Series

__all__ = ["Paired", "Pairing", "judge_quality", "unpaired"]

Z95 = 1.959964
SURE = 1.5
BENT = 0.25
"""Share of the way from one evaluation to the next that a curve may leave a straight line by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """What translations of the same sentences by two models say."""

    chance: float
    """How often chance alone makes such a difference."""
    sentences: int


Pairing = Callable[[str, int, str, int], Paired | str]
"""Compares the kept translations of one run at a step with another's; a sentence where that cannot be done."""


def unpaired(_one: str, _step: int, _other: str, _other_step: int) -> Paired | str:
    """Nobody looks at translations."""
    return "Kept translations were not compared."


def judge_quality(named: Mapping[str, Series], *, pairing: Pairing = unpaired) -> Iterator[Judgement]:
    """BLEU first, then the loss."""
    for score in (_Score.bleu(named, pairing), _Score.loss(named)):
        yield score.judge_picked("best", "Best", score.best)
        yield score.judge_picked("last", "Last", lambda measured: measured[-1])
        for against in AGAINST:
            yield score.judge_equal(against)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Score:
    """One score on the valid text, and how two of them are told apart."""

    key: Scored
    title: str
    digits: int
    is_lower_better: bool
    named: Mapping[str, Series]
    value: Callable[[Evaluation], float]
    interval: Callable[[Evaluation], tuple[float, float]]
    objection: Callable[[Series, Series], str]
    pairing: Pairing
    ground: str
    """What the intervals are made of."""

    @classmethod
    def bleu(cls, named: Mapping[str, Series], pairing: Pairing) -> "_Score":
        return cls(
            key="bleu",
            title="BLEU",
            digits=2,
            is_lower_better=False,
            named=named,
            value=lambda each: each.bleu,
            interval=lambda each: (each.bleu_low, each.bleu_high),
            objection=bleu_objection,
            pairing=pairing,
            ground="by intervals from resampling sentences, each run's for itself, which finds fewer differences "
            "than comparing sentence by sentence",
        )

    @classmethod
    def loss(cls, named: Mapping[str, Series]) -> "_Score":
        return cls(
            key="valid_loss",
            title="valid loss",
            digits=4,
            is_lower_better=True,
            named=named,
            value=lambda each: each.valid_loss,
            interval=_loss_interval,
            objection=loss_objection,
            pairing=unpaired,
            ground="by intervals from the size of the valid text, as if each model had been measured on another one",
        )

    def found(self, name: str) -> list[Evaluation]:
        return [each for each in self.named[name].evaluations if is_measured(each, self.key)]

    def best(self, measured: Sequence[Evaluation]) -> Evaluation:
        """Of finite ones, if there are any."""
        sign = -1 if self.is_lower_better else 1
        finite = [each for each in measured if isfinite(self.value(each))]
        return max(finite or measured, key=lambda each: sign * self.value(each))

    def judge_picked(
        self, key: str, title: str, pick: Callable[[Sequence[Evaluation]], Evaluation]
    ) -> Judgement:
        question = self.question(f"{self.key}_{key}", f"{title} {self.title}")
        held = {name: self.found(name) for name in self.named}
        values = [self.at(name, pick(found)) for name, found in held.items() if found]
        return judge(question, values, self.tell)

    def judge_equal(self, against: Against) -> Judgement:
        """At the last place that all runs have come to which are judged."""
        question = self.question(f"{self.key}_equal_{against}", f"At equal {against}: {self.title}")
        curves = {name: self.found(name) for name in self.named}
        places = {
            name: evaluation_places(self.named[name], found, against)
            for name, found in curves.items()
            if found
        }
        known = {name: place for name, place in places.items() if place is not None}
        if len(known) < 2:
            return unjudged(question, "fewer than two runs tell where they were evaluated.")
        tell = self.tell_by_tokens if against == "tokens" else self.tell
        lasts = [self.at(name, curves[name][-1]) for name in known]
        chosen = judged_runs(question, lasts, tell)
        if len(chosen) < 2:
            chosen = list(known)
            if against == "tokens" and (told := self.token_objection(chosen)):
                return unjudged(question, told)
        end = self.common_end({name: known[name] for name in chosen})
        if end < max(float(known[name][0]) for name in chosen):
            who = "they" if len(chosen) == len(known) else ", ".join(chosen)
            return unjudged(question, f"{who} have no {_PLACES[against]} in common.")
        question = self.question(question.key, f"{self.title} {_told(against, end)}")
        there = {name: place for name, place in known.items() if place[0] <= end <= place[-1]}
        values = [self.between(name, curves[name], place, end) for name, place in there.items()]
        absent = [self.at(name, curves[name][-1]) for name in known if name not in there]
        return _with_absent(judge(question, values, tell), absent, tell)

    def token_objection(self, names: Sequence[str]) -> str:
        first = self.named[names[0]]
        return next(filter(None, (token_objection(first, self.named[name]) for name in names[1:])), "")

    def tell_by_tokens(self, one: Value, other: Value, chance: float) -> Outcome:
        if told := self.token_objection((one.run, other.run)):
            return Outcome(is_told=None, why=told)
        return self.tell(one, other, chance)

    def common_end(self, known: Mapping[str, "np.typing.NDArray[np.float64]"]) -> float:
        """The last place at which all were evaluated; without such, the last that all have passed."""
        shared = set.intersection(*(set(place.tolist()) for place in known.values()))
        last = min(float(place[-1]) for place in known.values())
        # An evaluation long before the end that all share says less than a straight line near the end.
        near = [place for place in shared if place >= last / 2]
        return max(near, default=last)

    def question(self, key: str, title: str) -> Question:
        return Question(
            key=key,
            title=title[0].upper() + title[1:],
            unit="",
            digits=self.digits,
            is_lower_better=self.is_lower_better,
        )

    def at(self, name: str, each: Evaluation) -> Value:
        if not isfinite(self.value(each)):
            return Value(run=name, value=np.nan, step=each.step, is_broken=True)
        low, high = self.interval(each)
        return Value(run=name, value=self.value(each), low=low, high=high, step=each.step)

    def between(
        self, name: str, found: Sequence[Evaluation], place: "np.typing.NDArray[np.float64]", at: float
    ) -> Value:
        """On the straight line between two evaluations; the interval holds what the curve may be bent by."""
        after = int(np.searchsorted(place, at))
        if place[after] == at:
            return self.at(name, found[after])
        ends = (self.at(name, found[after - 1]), self.at(name, found[after]))
        if any(end.is_broken for end in ends):
            # Where between the two it broke nobody knows.
            return Value(run=name, value=np.nan, is_broken=all(end.is_broken for end in ends))
        share = float((at - place[after - 1]) / (place[after] - place[after - 1]))
        value = ends[0].value * (1 - share) + ends[1].value * share
        bent = BENT * abs(ends[1].value - ends[0].value) * 4 * share * (1 - share)
        half = max(end.half for end in ends) + bent
        return Value(run=name, value=value, low=value - half, high=value + half)

    def tell(self, one: Value, other: Value, chance: float) -> Outcome:
        if other.is_broken:
            told = self.objection(self.named[one.run], self.named[other.run])
            why = told or f"The {self.title} of {other.run} is no finite number there."
            return Outcome(is_told=None if told else True, why=why)
        reason = ""
        if one.step is not None and other.step is not None:
            paired = self.pairing(one.run, one.step, other.run, other.step)
            if isinstance(paired, Paired):
                why = (
                    f"Against {other.run} by paired bootstrap of {count(paired.sentences)} sentences: "
                    f"p = {paired.chance:.3f}."
                )
                return Outcome(is_told=paired.chance < chance, why=why)
            reason = paired if self.key == "bleu" else ""
        if told := self.objection(self.named[one.run], self.named[other.run]):
            return Outcome(is_told=None, why=told)
        if not (isfinite(one.half) and isfinite(other.half)):
            return Outcome(
                is_told=None, why=f"No interval was logged, so noise is not known. {reason}".strip()
            )
        reach = sqrt(one.half**2 + other.half**2) * stretch(chance)
        why = f"Judged {self.ground}. {reason}".strip()
        return Outcome(is_told=abs(one.value - other.value) > reach, why=why)


def _with_absent(
    judgement: Judgement, absent: Sequence[Value], tell: Callable[[Value, Value, float], Outcome]
) -> Judgement:
    """With the reason for leaving out each run that never came to the place."""
    held = [each for each in judgement.values if not each.is_broken and each.run not in judgement.left_out]
    reasons = []
    for value in absent:
        outcomes = (tell(each, value, CHANCE) for each in held)
        told = next((each.why for each in outcomes if each.is_told is None), "It was not evaluated there.")
        reasons.append(f"{value.run} left out: {told}")
    return replace(judgement, why=" ".join(filter(None, (judgement.why, *reasons))))


_PLACES: Mapping[Against, str] = {"steps": "steps", "tokens": "target tokens", "time": "training time"}


def _told(against: Against, place: float) -> str:
    if against == "steps":
        return f"at step {count(round(place))}"
    if against == "tokens":
        return f"after {short_count(round(place))} target tokens"
    return f"after {duration(place)} of training"


def _loss_interval(each: Evaluation) -> tuple[float, float]:
    """A token's loss is spread about as widely as it is high, and of a sure model, which errs seldom, more widely."""
    level = abs(each.valid_loss)
    spread = max(level, SURE * sqrt(level))
    half = Z95 * spread / sqrt(each.valid_tokens) if each.valid_tokens > 0 else np.nan
    return each.valid_loss - half, each.valid_loss + half
