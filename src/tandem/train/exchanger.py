"""The exchange of gradients over a whole run: its mode, how that is chosen, and what a checkpoint keeps of it."""

import math
from collections import deque
from collections.abc import Mapping
from statistics import median
from time import perf_counter
from typing import Any, cast

import torch
from torch import Tensor

from tandem.artefact import JsonValue
from tandem.config import ExchangeSection
from tandem.parallel.buckets import GradientBuckets
from tandem.parallel.coded_exchange import CodedExchange
from tandem.parallel.encoding import Bfloat16Codec, Codec
from tandem.parallel.exchange import MODES, ExactExchange, ExchangeMode
from tandem.parallel.messages import TorchTransport
from tandem.parallel.topology import Topology
from tandem.parallel.world import World
from tandem.runlog.event import ExchangeChosen
from tandem.runlog.writer import NullLog, RunLog
from tandem.train.exchange_choice import (
    Prediction,
    Probe,
    Trial,
    choose_mode,
    is_unsure,
    later_half,
    predict,
)
from tandem.train.exchange_guard import ExchangeGuard
from tandem.train.probe import ProbedStep, Wait

__all__ = ["EXCHANGE", "Exchanger", "build_codec", "exchange_facts"]

EXCHANGE = "exchange"
"""What a checkpoint calls the facts of it."""
PROBE_STEPS, PROBES, MOST_PROBES = 20, 3, 9
"""Every so many steps one is probed. The last three choose the mode, when they agree or nine were made."""
_WAITS = 5
"""Of so many steps before a probe the wait is looked at too."""
_TRIAL_S, _MOST_TRIALS = 1.0, 100
"""How long each mode is tried, and how often at most: the burst that a shaped link lets through has to pass."""

_NUMBER_BYTES = 4


class Exchanger:
    """Has gradients exchanged in the run's mode, once its first steps are over; on one host always exactly.

    Every rank must make the same calls: which mode is in force must be the same on all of them at every step.
    """

    def __init__(
        self,
        buckets: GradientBuckets,
        *,
        world: World,
        topology: Topology,
        section: ExchangeSection,
        second_moment: Tensor,
        seed: int,
        timeout_s: float,
        log: RunLog | None = None,
    ) -> None:
        """`second_moment` is Adam's; `seed` is of the codec; the log of one rank is enough."""
        self.topology = topology
        self._buckets, self._world, self._section = buckets, world, section
        self._log = log or NullLog()
        self._exact = ExactExchange(buckets, world)
        self._mode: ExchangeMode = "exact"
        self._kept = ""
        self._reason = "one host"
        self.is_undecided = False
        self._codecs: dict[ExchangeMode, Codec] = {}
        self.coded: CodedExchange | None = None
        """None where gradients can only be exchanged exactly."""
        if len(topology.hosts) > 1 and section.mode != "exact":
            self._codecs = {mode: build_codec(mode, seed=seed, device=world.device) for mode in MODES[1:]}
            self.coded = CodedExchange(
                "bf16",
                self._codecs["bf16"],
                layout=buckets,
                second_moment=second_moment,
                topology=topology,
                transport=TorchTransport(timeout_s=timeout_s),
                world=world,
            )
        self._guard = ExchangeGuard(section, world, buckets=len(buckets), seed=seed)
        self._left = ""
        self._step = 0
        self._probes: list[Probe] = []
        self._waits: deque[Wait] = deque(maxlen=_WAITS)
        self._trial: Trial | None = None

    def resume(self, facts: Mapping[str, Any]) -> None:
        """Take the mode of the recipe, or the one that the checkpoint was made in."""
        told = exchange_facts(facts)
        self._kept = str(told.get("mode", ""))
        kept = next((mode for mode in MODES if mode == self._kept), None)
        # What was found to do harm is not tried again only because the run was stopped or killed.
        is_left = kept is not None and told.get("left") == self._section.mode
        self._left = self._section.mode if is_left else ""
        self._guard.resume(told.get("far"))
        if len(self.topology.hosts) == 1:
            return
        if kept is not None and is_left:
            self._mode, self._reason = kept, "checked"
        elif self._section.mode != "auto":
            self._mode, self._reason = self._section.mode, "ordered"
        elif kept is not None:
            self._mode, self._reason = kept, "resumed"
        else:
            self._reason, self.is_undecided = "unmeasured", True
        self._use(self._mode)

    def announce(self, step: int) -> None:
        """Log which mode the run begins or goes on with, unless there is no other."""
        if len(self.topology.hosts) > 1 or self._section.mode in MODES[1:]:
            previous = self._kept if self._kept in MODES else ""
            self._log.log(self._describe(step, previous))

    def begin(self, step: int, *, scale: Tensor | None) -> None:
        """Begin a step, whose gradients are multiplied by `scale`; None stands for 1."""
        self._step = step
        if self.coded is not None and self.is_encoded(step):
            self.coded.begin(step, scale=scale, check=self._guard.watch(step))
            self._buckets.exchange = self.coded
        else:
            self._buckets.exchange = self._exact

    def is_encoded(self, step: int) -> bool:
        """Whether this step's gradients are encoded."""
        return self._mode != "exact" and self.coded is not None and step > self._section.exact_steps

    def commit(self, skipped: Tensor) -> None:
        """End the step; `skipped` is 1 if it changed nothing."""
        if self.coded is None or self._buckets.exchange is not self.coded:
            return
        checked = self._guard.judge(self._step, mode=self._mode, skipped=skipped)
        self.coded.commit(skipped)
        if checked is not None:
            self._log.log(checked)
        if checked is not None and not checked.is_good:
            self._fall_back()

    def _fall_back(self) -> None:
        """Go on in the next more exact mode; unless it is `exact`, it also pays what the one before still owes."""
        previous: ExchangeMode = self._mode
        self._left = self._left or self._section.mode
        self._guard.forget()
        self._use(MODES[MODES.index(previous) - 1])
        self._reason = "checked"
        self._log.log(self._describe(self._step, previous))

    def close(self) -> None:
        """Let threads end."""
        if self.coded is not None:
            self.coded.close()

    # --- choosing a mode ---

    def wants_probe(self, step: int) -> bool:
        """Whether a mode is still to be chosen, and this step is to be done without exchange as well for that."""
        return self.is_undecided and step % PROBE_STEPS == 0

    def try_modes(self, step: int, *, scale: Tensor | None) -> None:
        """Exchange what is in the buckets in each mode, with nothing beside it, once the first probes are made.

        What the buckets hold is spoilt; no residual changes.
        """
        if self._trial is not None or len(self._probes) < PROBES - 1 or self.coded is None:
            return
        exchange_s, codec_s = dict.fromkeys(MODES, math.inf), dict.fromkeys(MODES, 0.0)
        for mode in MODES:
            exchange_s[mode], codec_s[mode] = self._try(mode, step, scale)
        self._trial = Trial(
            exchange_s=exchange_s,
            codec_s=codec_s,
            tail_share=self._buckets.buckets[-1].numel() / self._buckets.flat.numel(),
            shares_processor=self._world.device.type == "cpu",
        )

    def note_step(self, step: int, wait: Wait, probed: ProbedStep | None) -> None:
        """Take the times of a step while no mode is chosen; with enough probes, choose one for the next steps."""
        if probed is None:
            self._waits.append(wait)
            return
        _synchronize(self._world.device)
        times = probed.read(step, exchange_s=wait.seconds)
        # In one order on all ranks, so that all choose by the same numbers.
        own: list[JsonValue] = [times.unsynchronised_s, times.synchronised_s, times.exchange_s]
        own += [before.seconds for before in self._waits]
        ranks = cast(list[list[float]], self._world.gather(own))
        compute, synchronised, waits, *before = zip(*ranks, strict=True)
        self._probes.append(
            Probe(
                compute_s=compute,
                synchronised_s=synchronised,
                wait_s=waits,
                usual_wait_s=median(map(min, before)) if before else 0.0,
            )
        )
        if self._trial is not None:
            self._choose(step, self._trial)

    def _try(self, mode: ExchangeMode, step: int, scale: Tensor | None) -> tuple[float, float]:
        """Seconds of an exchange, and of its codec, on the slowest rank, once the link carries what it can keep up."""
        if mode != "exact":
            # The first in a mode finds its kernels and its memory.
            self._exchange_once(mode, step, scale)
        tried: list[list[float]] = []
        while not tried or (sum(whole for whole, _ in tried) < _TRIAL_S and len(tried) < _MOST_TRIALS):
            tried.append(self._largest(self._exchange_once(mode, step, scale)))
        exchange_s, codec_s = (later_half(column) for column in zip(*tried, strict=True))
        return exchange_s, codec_s

    def _exchange_once(self, mode: ExchangeMode, step: int, scale: Tensor | None) -> list[float]:
        assert self.coded is not None
        if mode == "exact":
            self._buckets.exchange = self._exact
        else:
            self.coded.use(mode, self._codecs[mode])
            self.coded.begin(step, scale=scale)
            self._buckets.exchange = self.coded
        self._world.barrier()
        _synchronize(self._world.device)
        begun = perf_counter()
        self._buckets.finish()
        _synchronize(self._world.device)
        whole_s = perf_counter() - begun
        # As large as before: sums of sums would soon be infinite, which is not what steps exchange.
        self._buckets.flat.div_(self._world.size)
        return [whole_s, 0.0 if mode == "exact" else self.coded.busy_s]

    def _choose(self, step: int, trial: Trial) -> None:
        predicted = predict(trial, self._probes[-PROBES:])
        if is_unsure(predicted, trial) and len(self._probes) < MOST_PROBES:
            return
        self._use(choose_mode(predicted, trial))
        self._reason, self.is_undecided = "measured", False
        self._log.log(self._describe(step, "exact", trial=trial, predicted=predicted))

    def _use(self, mode: ExchangeMode) -> None:
        self._mode = mode
        if self.coded is not None and mode != "exact":
            self.coded.use(mode, self._codecs[mode])

    def _largest(self, values: list[float]) -> list[float]:
        """Over all ranks, so that all choose by the same numbers."""
        shared = torch.tensor(values, dtype=torch.float64, device=self._world.device)
        self._world.largest(shared)
        largest: list[float] = shared.tolist()
        return largest

    # --- what others are told ---

    def facts(self, step: int) -> dict[str, JsonValue]:
        """What a checkpoint of this step must know; the residuals are beside it, one for each owner."""
        if self.coded is None and not self._kept:
            return {}
        guarded: dict[str, JsonValue] = {"left": self._left} if self._left else {}
        if self._guard.far:
            guarded["far"] = self._guard.far
        if len(self.topology.hosts) == 1:
            return {EXCHANGE: {"mode": self._kept, "owners": [], **guarded}}
        owners = [len(self.topology.hosts), self.topology.shares] if self.is_encoded(step) else []
        return {EXCHANGE: {"mode": "auto" if self.is_undecided else self._mode, "owners": owners, **guarded}}

    def link_bytes(self, mode: ExchangeMode) -> int:
        """Bytes that the busiest host sends to others in a step of this mode."""
        if len(self.topology.hosts) == 1:
            return 0
        ranks = self._world.size
        ring = 2 * (ranks - 1) / ranks
        if mode == "exact":
            return round(ring * self._buckets.flat.numel() * _NUMBER_BYTES)
        if self.coded is None:
            return 0
        return self.coded.link_bytes(self._codecs[mode]) + round(ring * self.coded.exact_bytes)

    def _describe(
        self,
        step: int,
        previous: str,
        *,
        trial: Trial | None = None,
        predicted: Prediction | None = None,
    ) -> ExchangeChosen:
        modes: tuple[ExchangeMode, ...] = MODES if self.coded is not None else ("exact",)

        def listed(values: Mapping[ExchangeMode, float] | None) -> tuple[float, ...]:
            return tuple(math.nan if values is None else values[mode] for mode in modes)

        return ExchangeChosen(
            step=step,
            mode=self._mode,
            previous=previous,
            reason=self._reason,
            hosts=len(self.topology.hosts),
            shares=self.topology.shares,
            exact_steps=self._section.exact_steps,
            modes=modes,
            link_bytes=tuple(self.link_bytes(mode) for mode in modes),
            exchange_s=listed(None if trial is None else trial.exchange_s),
            codec_s=listed(None if trial is None else trial.codec_s),
            exposed_s=listed(None if predicted is None else predicted.exposed_s),
            compute_s=math.nan if predicted is None else predicted.compute_s,
            spread_s=math.nan if predicted is None else predicted.spread_s,
        )


def exchange_facts(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a checkpoint's facts say of the exchange; nothing where they say what is none."""
    told = facts.get(EXCHANGE)
    return told if isinstance(told, Mapping) else {}


def build_codec(mode: ExchangeMode, *, seed: int, device: torch.device) -> Codec:
    """The codec of a mode that has one; the same on every rank."""
    if mode == "bf16":
        return Bfloat16Codec()
    from tandem.parallel.codec import GradientCodec  # noqa: PLC0415

    return GradientCodec(seed=seed, device=device)


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
