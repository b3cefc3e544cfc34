"""The runs with faults that are really injected: what is done to which run, and what is right to say of learning."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from benchmarks.truth.injectors import (
    Injector,
    half_duplex,
    hogged,
    interrupted,
    link,
    one_way,
    stopped,
    swapping,
    weak,
)

__all__ = ["CASES", "Case", "Kind"]

Kind: TypeAlias = Literal["network", "rank", "ranks", "data", "disk", "learning", "none"]
"""Where the time goes that the fault takes: `rank` is one of them, `ranks` are all."""

_FALLING = {"trained": "no", "overfitting": "no"}
_TIMED = (
    "batch.target_tokens=4096",
    "train.max_steps=10000",
    "train.max_minutes=0.75",
    "optim.warmup_steps=10",
    "evaluate.every_steps=10",
    "evaluate.sentences=30",
    "evaluate.probe_pairs=100",
    "checkpoint.every_steps=10000",
    "telemetry.probe_steps=12",
)
_LEARNING = ("evaluate.every_steps=25",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A run with a fault, or with none."""

    name: str
    kind: Kind
    inject: Injector | None = None
    is_lab: bool = True
    rate: str = "none"
    """Of the lab's links while all is well."""
    words: Sequence[str] = _TIMED
    healthy_s: float = 12.0
    """For which the run is left alone: what a step takes then is what the fault's steps are held against."""
    healthy_steps: int = 6
    answers: Mapping[str, str] = field(default_factory=lambda: _FALLING)
    """What is right of trained and overfitting, by the way the run was made."""

    @property
    def evaluate_every(self) -> int:
        """Steps between evaluations, whose time is no step's."""
        word = next(word for word in self.words if word.startswith("evaluate.every_steps="))
        return int(word.partition("=")[2])


def _link(name: str, *words: str, on_s: float = 0.0, off_s: float = 0.0) -> Case:
    return Case(name=f"link-{name}", kind="network", inject=link(*words, on_s=on_s, off_s=off_s))


def _rank(name: str, inject: Injector, *, is_lab: bool = True) -> Case:
    return Case(name=name, kind="rank", inject=inject, is_lab=is_lab)


def _reader(name: str, **how: float | Sequence[int]) -> Case:
    return Case(name=f"reader-{name}", kind="data", inject=weak(**how), is_lab=False)


def _learning(name: str, *words: str, stop_at: int = 0, **answers: str) -> Case:
    return Case(
        name=name,
        kind="learning",
        inject=interrupted() if stop_at else None,
        is_lab=False,
        words=(*_LEARNING, *words),
        healthy_s=0.0,
        healthy_steps=stop_at,
        answers={**_FALLING, **answers},
    )


_NETWORK = (
    _link("25mbit", "rate", "25mbit"),
    _link("50mbit", "rate", "50mbit"),
    _link("100mbit", "rate", "100mbit"),
    _link("200mbit", "rate", "200mbit"),
    _link("400mbit", "rate", "400mbit"),
    _link("20mbit-in-bursts", "rate", "20mbit", on_s=4.0, off_s=4.0),
    _link("10mbit-once-a-while", "rate", "10mbit", on_s=4.0, off_s=12.0),
    _link("delay-5ms", "delay", "5ms"),
    _link("delay-30ms", "delay", "30ms"),
    _link("delay-80ms", "delay", "80ms"),
    _link("loss-half-percent", "loss", "0.5%"),
    _link("loss-3-percent", "loss", "3%"),
    _link("loss-and-delay", "loss", "1%", "delay", "10ms"),
    _link("down-for-1s", "down", on_s=1.0, off_s=6.0),
    _link("down-for-3s", "down", on_s=3.0, off_s=12.0),
    Case(name="one-way-20mbit", kind="network", inject=one_way("20mbit")),
    Case(name="one-way-60mbit", kind="network", inject=one_way("60mbit")),
    Case(name="half-duplex-60mbit", kind="network", inject=half_duplex("60mbit")),
    Case(name="half-duplex-150mbit", kind="network", inject=half_duplex("150mbit")),
    Case(name="half-duplex-400mbit", kind="network", inject=half_duplex("400mbit")),
)
_RANKS = (
    _rank("stop-rank1-1s-of-4", stopped(1, on_s=1.0, off_s=3.0)),
    _rank("stop-rank1-3s-of-12", stopped(1, on_s=3.0, off_s=9.0)),
    _rank("stop-rank1-6s-of-20", stopped(1, on_s=6.0, off_s=14.0)),
    _rank("stop-rank0-2s-of-10", stopped(0, on_s=2.0, off_s=8.0)),
    _rank("stop-host-2s-of-8", stopped(on_s=2.0, off_s=6.0, host="h2")),
    Case(name="stop-both-2s-of-8", kind="ranks", inject=stopped(0, 1, on_s=2.0, off_s=6.0)),
    _rank("stop-alone-2s-of-6", stopped(1, on_s=2.0, off_s=4.0), is_lab=False),
    _rank("stop-alone-5s-of-15", stopped(0, on_s=5.0, off_s=10.0), is_lab=False),
    _rank("slow-core-third", stopped(1, on_s=0.06, off_s=0.03)),
    _rank("slow-core-half", stopped(1, on_s=0.04, off_s=0.04)),
    _rank("slow-core-four-fifths", stopped(1, on_s=0.02, off_s=0.08)),
    _rank("slow-core-alone", stopped(0, on_s=0.06, off_s=0.03), is_lab=False),
    _rank("shared-core", hogged(1, hogs=2)),
    _rank("shared-core-alone", hogged(1, hogs=1), is_lab=False),
    Case(name="swapping-a-little", kind="ranks", inject=swapping(share=0.8), is_lab=False),
    Case(name="swapping-a-lot", kind="ranks", inject=swapping(share=0.55), is_lab=False),
)
_DATA = (
    _reader("far", batch_s=2.0),
    _reader("near", batch_s=0.05),
    _reader("far-for-rank1", batch_s=2.0, ranks=(1,)),
    _reader("stalls-hidden", batch_s=1.0, every=8),
    _reader("stalls", batch_s=12.0, every=10),
    _reader("stalls-for-rank0", batch_s=12.0, every=10, ranks=(0,)),
)
_DISKS = (
    Case(name="slow-disk", kind="disk", inject=weak(flush_s=0.5), is_lab=False),
    Case(name="slow-disk-for-rank0", kind="disk", inject=weak(flush_s=1.5, ranks=(0,)), is_lab=False),
)
_HEALTHY = (
    Case(name="healthy-lab", kind="none"),
    Case(name="healthy-1gbit", kind="none", rate="1gbit"),
    Case(name="healthy-alone", kind="none", is_lab=False),
)
_FEW = ("batch.target_tokens=1024", "train.max_steps=300")
_LEARNED = (
    _learning(
        "overfit-500-pairs",
        "data.train.0.builtin.pairs=500",
        *_FEW,
        trained="yes",
        overfitting="yes or partly",
    ),
    _learning(
        "overfit-250-pairs",
        "data.train.0.builtin.pairs=250",
        *_FEW,
        trained="yes",
        overfitting="yes or partly",
    ),
    _learning("under-short-plan", "train.max_steps=110", "evaluate.every_steps=15"),
    _learning("under-stopped", "train.max_steps=20000", "evaluate.every_steps=15", stop_at=110),
    _learning(
        "under-in-warm-up",
        "train.max_steps=20000",
        "evaluate.every_steps=15",
        "optim.warmup_steps=400",
        stop_at=110,
    ),
    _learning(
        "under-before-decay",
        "train.max_steps=400",
        "evaluate.every_steps=20",
        "optim.schedule=linear",
        stop_at=220,
    ),
)

CASES: tuple[Case, ...] = (*_HEALTHY, *_NETWORK, *_RANKS, *_DATA, *_DISKS, *_LEARNED)
