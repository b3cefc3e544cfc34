"""Where runs stand in Prometheus' text format, for whoever scrapes it."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias, get_args

from tandem.observe.visible import visible
from tandem.observe.watch.hosts import Moment, WatchedHost
from tandem.observe.watch.life import Life, is_quiet, life_of
from tandem.observe.watch.progress import progress_of
from tandem.observe.watch.state import Doing, WatchState

__all__ = ["CONTENT_TYPE", "metrics_text"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

NANO = 1_000_000_000
BITS = 8

_Sample: TypeAlias = tuple[str, dict[str, str], float | None]

_GAUGES = {
    "tandem_run_info": "A run, with what it trains on.",
    "tandem_run_doing": "1 for what the run does, 0 for all else.",
    "tandem_run_finished": "Whether the run has ended.",
    "tandem_run_silent": "Whether the run has said nothing for longer than its work explains, or is lost.",
    "tandem_run_lost": "Whether the run's process is gone without a word.",
    "tandem_last_record_timestamp_seconds": "When the run wrote its last record.",
    "tandem_progress_ratio": "Share of the way to the stop rule that ends the run first.",
    "tandem_remaining_seconds": "Until the end at the present pace, evaluations and checkpoints included.",
    "tandem_step": "Optimiser updates so far; goes back where a restart does.",
    "tandem_epoch": "Passes over the data that are finished.",
    "tandem_target_tokens": "Target tokens of the steps that stand.",
    "tandem_loss": "What is minimised per target token, over the last steps.",
    "tandem_nll": "Negative log-likelihood per target token, over the last steps.",
    "tandem_learning_rate": "Of the last step.",
    "tandem_gradient_norm": "Of the last step, before clipping.",
    "tandem_target_tokens_per_second": "Of all ranks while training, over the last steps.",
    "tandem_step_seconds": "Mean time of a step, over the last ones.",
    "tandem_phase_ratio": "Share of the last steps' time that rank 0 spent in each phase; "
    "exchange is all its waiting for gradients, for slower ranks too.",
    "tandem_evaluation_step": "Step of the last evaluation.",
    "tandem_valid_loss": "Negative log-likelihood per target token of the valid text, last evaluation.",
    "tandem_probe_loss": "The same on training pairs.",
    "tandem_bleu": "BLEU of the valid text, from 0 to 100, last evaluation.",
    "tandem_chrf": "chrF of the valid text, from 0 to 100, last evaluation.",
    "tandem_best_valid_loss": "The lowest so far.",
    "tandem_best_bleu": "The highest so far.",
    "tandem_troubles": "Kinds of trouble that the run has met and survived.",
    "tandem_host_sample_timestamp_seconds": "When the host was last sampled.",
    "tandem_host_cpu_ratio": "Share of all cores that is busy.",
    "tandem_host_memory_bytes": "In use, caches not counted.",
    "tandem_host_memory_size_bytes": "That the host has.",
    "tandem_gpu_utilisation_ratio": "Share of the time in which some kernel ran, waiting ones included.",
    "tandem_gpu_memory_bytes": "In use.",
    "tandem_gpu_memory_size_bytes": "That the GPU has.",
    "tandem_gpu_power_watts": "That the GPU draws.",
    "tandem_gpu_power_limit_watts": "That the GPU may draw.",
    "tandem_gpu_temperature_celsius": "Of the GPU.",
    "tandem_gpu_throttled": "Whether its clock is held down by heat or another fault; its own power limit is none.",
    "tandem_nic_receive_bytes_per_second": "That the interface takes in.",
    "tandem_nic_transmit_bytes_per_second": "That the interface gives out.",
    "tandem_nic_speed_bytes_per_second": "Nominal, one direction: as the card agreed on with the switch.",
    "tandem_nic_delivered_bytes_per_second": "That the link behind the interface carried in one direction: "
    "by=measured before training, or the highest seen in any second.",
}
_COUNTERS = {
    "tandem_spent_seconds_total": "Seconds of the run by what they were spent on.",
}


def metrics_text(
    states: Mapping[str, WatchState], *, now_ns: int, folders: Mapping[str, Path] = MappingProxyType({})
) -> str:
    """All that is known of the runs, which have their keys as label `run`; what is not known is left out.

    Of a run whose folder is given it is known whether its process is there.
    """
    lines: dict[str, list[str]] = {name: [] for name in (*_GAUGES, *_COUNTERS)}
    for key, state in states.items():
        folder = folders.get(key)
        life = life_of(state, folder=folder, now_ns=now_ns)
        called = folder.resolve().name if folder is not None else state.run or key
        for name, labels, value in _samples(state, called, life=life, now_ns=now_ns):
            if value is not None and not math.isnan(value):
                lines[name].append(f"{name}{_labels({'run': key, **labels})} {_number(value)}")
    kinds = [("gauge", _GAUGES), ("counter", _COUNTERS)]
    return "".join(
        f"# HELP {name} {told}\n# TYPE {name} {kind}\n" + "".join(f"{line}\n" for line in lines[name])
        for kind, family in kinds
        for name, told in family.items()
        if lines[name]
    )


def _samples(state: WatchState, called: str, *, life: Life, now_ns: int) -> Iterator[_Sample]:
    yield from _life(state, called, life)
    yield from _training(state, life)
    yield from _evaluations(state)
    for host in state.hosts.values():
        # A finished run says nothing of what its hosts do now.
        if host.last is not None and host.age_s(now_ns) is None:
            yield from _host(host, host.last, state)


def _life(state: WatchState, called: str, life: Life) -> Iterator[_Sample]:
    started = state.started
    about = {} if started is None else {"device": started.device, "precision": started.precision}
    yield "tandem_run_info", {"name": called, "recipe": state.recipe, **about}, 1
    for each in get_args(Doing):
        yield "tandem_run_doing", {"doing": each}, each == state.doing
    yield "tandem_run_finished", {}, life == "over"
    yield "tandem_run_silent", {}, is_quiet(life)
    yield "tandem_run_lost", {}, life == "lost"
    yield "tandem_last_record_timestamp_seconds", {}, state.last_time_ns / NANO or None
    yield "tandem_troubles", {}, len(state.troubles)
    spent = state.spent
    yield "tandem_spent_seconds_total", {"activity": "training"}, spent.training_s
    yield "tandem_spent_seconds_total", {"activity": "evaluation"}, spent.evaluation_s
    yield "tandem_spent_seconds_total", {"activity": "checkpoint"}, spent.checkpoint_s


def _training(state: WatchState, life: Life) -> Iterator[_Sample]:
    progress, last, recent = progress_of(state, life=life), state.recent.last, state.recent
    if progress is not None:
        yield "tandem_progress_ratio", {}, progress.share
        yield "tandem_remaining_seconds", {}, progress.left_s
    if state.started is not None:
        yield "tandem_step", {}, state.step
        yield "tandem_epoch", {}, state.epoch
        yield "tandem_target_tokens", {}, state.tokens
    if last is None:
        return
    yield "tandem_loss", {}, recent.loss
    yield "tandem_nll", {}, recent.nll
    yield "tandem_learning_rate", {}, last.learning_rate
    yield "tandem_gradient_norm", {}, last.gradient_norm
    if life == "at work" and state.doing in {"training", "evaluating"}:
        yield "tandem_target_tokens_per_second", {}, recent.tokens_per_s
        yield "tandem_step_seconds", {}, recent.step_s
        for phase, part in recent.phases.items():
            yield "tandem_phase_ratio", {"phase": phase}, part


def _evaluations(state: WatchState) -> Iterator[_Sample]:
    # One that is being made has no numbers yet.
    held = [each for each in state.evaluations if (each.valid_loss, each.bleu) != (None, None)]
    if held:
        yield "tandem_evaluation_step", {}, held[-1].step
        yield "tandem_valid_loss", {}, held[-1].valid_loss
        yield "tandem_probe_loss", {}, held[-1].probe_loss
        yield "tandem_bleu", {}, held[-1].bleu
        yield "tandem_chrf", {}, held[-1].chrf
    if (best := state.best("loss")) is not None:
        yield "tandem_best_valid_loss", {}, best.valid_loss
    if (best := state.best("bleu")) is not None:
        yield "tandem_best_bleu", {}, best.bleu


def _host(host: WatchedHost, moment: Moment, state: WatchState) -> Iterator[_Sample]:
    labels, described = {"host": host.name}, host.described
    yield "tandem_host_sample_timestamp_seconds", labels, moment.time_ns / NANO
    yield "tandem_host_cpu_ratio", labels, moment.cpu
    yield "tandem_host_memory_bytes", labels, moment.memory_bytes
    yield "tandem_host_memory_size_bytes", labels, _known(described.memory_bytes)
    for number in range(len(described.gpus)):
        yield from _gpu(host, moment, number)
    for number, nic in enumerate(described.interfaces):
        of_nic = {**labels, "nic": nic}
        yield "tandem_nic_receive_bytes_per_second", of_nic, moment.received_bytes_per_s[number]
        yield "tandem_nic_transmit_bytes_per_second", of_nic, moment.sent_bytes_per_s[number]
        bits_per_s = dict(enumerate(described.interface_bits_per_s)).get(number, 0)
        yield "tandem_nic_speed_bytes_per_second", of_nic, bits_per_s / BITS if bits_per_s > 0 else None
        if (link := state.delivered(host, number)) is not None:
            by = "measured" if link.is_measured else "highest"
            yield "tandem_nic_delivered_bytes_per_second", {**of_nic, "by": by}, link.bytes_per_s


def _gpu(host: WatchedHost, moment: Moment, number: int) -> Iterator[_Sample]:
    labels, described = {"host": host.name, "gpu": str(number)}, host.described
    yield "tandem_gpu_utilisation_ratio", labels, moment.gpu_utilisation[number]
    yield "tandem_gpu_memory_bytes", labels, moment.gpu_memory_bytes[number]
    sizes = dict(enumerate(described.gpu_memory_bytes))
    yield "tandem_gpu_memory_size_bytes", labels, _known(sizes.get(number, -1))
    yield "tandem_gpu_power_watts", labels, moment.gpu_power_w[number]
    limits = dict(enumerate(described.gpu_power_limit_w))
    yield "tandem_gpu_power_limit_watts", labels, limits.get(number)
    yield "tandem_gpu_temperature_celsius", labels, moment.gpu_temperature_c[number]
    yield "tandem_gpu_throttled", labels, moment.gpu_throttled[number]


def _known(count: int) -> float | None:
    return None if count < 0 else float(count)


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(visible(value))}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if float(value).is_integer() else repr(float(value))
