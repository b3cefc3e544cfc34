"""What ranks and heads say besides steps: starts, evaluations, checkpoints, losses of workers, and ends."""

from collections.abc import Iterator
from math import isfinite, nan
from typing import TYPE_CHECKING

from benchmarks.truth.world.card import build_card
from benchmarks.truth.world.history import Attempt, Checkpoint, Evaluation, History
from benchmarks.truth.world.learning import describe_plan
from benchmarks.truth.world.timing import host_of_rank
from benchmarks.truth.world.world import World

from tandem.runlog.event import (
    BatchesPlanned,
    CheckpointRejected,
    CheckpointRemoved,
    CheckpointWritten,
    DataPrepared,
    DeviceMeasured,
    EvaluationFinished,
    EvaluationStarted,
    Event,
    HostExamined,
    LinkMeasured,
    LossMeasured,
    RoundStarted,
    RunFinished,
    RunStarted,
    StageFinished,
    StageStarted,
    StopAsked,
    TrainingFinished,
    TrainingStarted,
    TranslationScored,
    WorkersLost,
)

if TYPE_CHECKING:
    from benchmarks.truth.world.write import LogFiles

__all__ = ["announce", "checkpoint_events", "checkpoint_files", "evaluation_events", "part", "peak_flops"]

_STAGES = (("clean", 0.5), ("subword", 0.2), ("encode", 0.25), ("card", 0.05))


def announce(history: History, number: int, logs: "LogFiles") -> None:
    """Log all that comes before the first step of a start."""
    world, attempt = history.world, history.attempts[number]
    head = logs.host(0)
    is_called = (
        number == 0 or not history.attempts[number - 1].is_killed or world.cluster.launcher == "torchrun"
    )
    if is_called and world.cluster.launcher != "torchrun":
        head.add(attempt.called_s, _run_started(world, attempt, world.cluster.hosts[0]))
    if number == 0 and world.pauses.prepare_s:
        for time_s, event in _preparation(world, attempt.called_s + 0.01):
            head.add(time_s, event)
    if is_called and world.evidence.has_links and len(attempt.start.workers) > 1:
        for event in _examination(world, attempt):
            head.add(attempt.launched_s - 1.5, event)
    if world.cluster.launcher == "hosts":
        head.add(attempt.launched_s - 1.0, _round(world, attempt, number))
    hosts = host_of_rank(attempt.start.workers)
    for rank in range(attempt.start.ranks):
        file, late = logs.rank(rank, int(hosts[rank])), 0.02 * (rank * 7 % 5)
        file.add(
            attempt.launched_s + late, _run_started(world, attempt, world.cluster.hosts[int(hosts[rank])])
        )
        if world.evidence.has_peak:
            file.add(attempt.launched_s + 0.4 + late, _device(world, rank))
    first = logs.rank(0, 0)
    if attempt.rejected_step:
        first.add(attempt.training_s - 0.01, _rejection(attempt.rejected_step))
    first.add(attempt.training_s - 0.001, _batches(world))
    first.add(attempt.training_s, _training_started(history, attempt))


def part(history: History, number: int, logs: "LogFiles") -> None:
    """Log the end of a start, as far as anybody was left to say it."""
    world, attempt = history.world, history.attempts[number]
    is_last = attempt is history.attempts[-1]
    if attempt.is_killed:
        if not is_last and world.cluster.launcher != "torchrun":
            logs.host(0).add(attempt.end_s + 0.2, _loss(world, number, attempt))
        return
    is_asked = attempt.start.ending == "stop"
    reason = "asked to stop" if is_asked else f"reached {attempt.start.max_steps:,} steps"
    hosts = host_of_rank(attempt.start.workers)
    for rank in range(attempt.start.ranks):
        file = logs.rank(rank, int(hosts[rank]))
        if is_asked:
            file.add(float(attempt.timing.end[-1].max()) - 0.001, StopAsked(signal="SIGTERM"))
        if rank == 0:
            file.add(attempt.end_s - 0.003, _training_finished(history, attempt, reason))
        file.add(attempt.end_s - 0.002, RunFinished(reason=reason))
    if world.cluster.launcher != "torchrun":
        logs.host(0).add(attempt.end_s, RunFinished(reason=reason))


def _run_started(world: World, attempt: Attempt, host: str) -> Event:
    return RunStarted(
        run=f"world-{world.seed}",
        tandem="0.1.0",
        command=("tandem", "train", "recipe.yaml"),
        recipe=f"{world.seed:016x}",
        world_size=attempt.start.ranks,
        host=host,
        python="3.11.9",
        torch="2.13.0",
    )


def _preparation(world: World, begin_s: float) -> Iterator[tuple[float, Event]]:
    now = begin_s
    for name, share in _STAGES:
        length = (world.pauses.prepare_s - 0.05) * share
        yield now, StageStarted(stage=name)
        now += length
        yield (
            now,
            StageFinished(
                stage=name, duration_s=length, counts={"pairs": world.training.pairs}, reused=False
            ),
        )
    if world.evidence.has_card:
        yield now, DataPrepared(card=build_card(world).to_json())


def _examination(world: World, attempt: Attempt) -> Iterator[Event]:
    network, count = world.network, len(attempt.start.workers)
    for host in range(count):
        yield HostExamined(
            host=world.cluster.hosts[host],
            address=f"10.0.0.{host + 1}",
            interface="eth0",
            interface_bits_per_s=network.nominal_bits_per_s,
            tandem="0.1.0",
            python="3.11.9",
            torch="2.13.0",
            cores=world.cluster.cores,
            memory_bytes=64 * 2**30,
            gpus=(world.cluster.device,) * attempt.start.workers[host] if world.cluster.has_gpus else (),
            gpu_memory_bytes=32 * 2**30 if world.cluster.has_gpus else 0,
            clock_offset_s=world.clocks.offset_s[host] - world.clocks.offset_s[0],
            clock_uncertainty_s=max(network.latency_s, 2e-4),
            disk_free_bytes=512_000_000_000,
            disk_write_bytes_per_s=4.5e8,
        )
    for sender in range(count):
        for receiver in range(count):
            if sender == receiver:
                continue
            slowest = min(network.bytes_per_s[sender], network.bytes_per_s[receiver])
            yield LinkMeasured(
                sender=world.cluster.hosts[sender],
                receiver=world.cluster.hosts[receiver],
                connection="open",
                latency_s=2 * network.latency_s,
                bytes_per_s=slowest * 0.98,
                loss=min(network.loss_chance / 300, 0.02),
                datagrams=400,
            )


def _round(world: World, attempt: Attempt, number: int) -> Event:
    hosts = world.cluster.hosts[: len(attempt.start.workers)]
    return RoundStarted(
        round=number + 1,
        hosts=hosts,
        workers=dict(zip(hosts, attempt.start.workers, strict=True)),
        address="10.0.0.1",
        interfaces=("eth0",) * len(hosts),
        network="one host" if len(hosts) == 1 else ("mesh" if world.network.has_mesh else "trusted"),
    )


def peak_flops(world: World) -> float:
    """Of each rank's device, so that computing reaches the drawn share of it."""
    own = world.model.flops_per_token * world.model.tokens_per_update / world.starts[0].ranks
    return own / world.compute.step_s / world.model.peak_share


def _device(world: World, rank: int) -> Event:
    peak = peak_flops(world) * (1 + 0.003 * (rank % 4))
    precision = world.model.precision
    return DeviceMeasured(device=world.cluster.device, precision=precision, flops_per_s=peak, duration_s=0.3)


def _batches(world: World) -> Event:
    return BatchesPlanned(
        pairs=world.training.pairs, updates_per_epoch=world.training.updates_per_epoch, padding_share=0.031
    )


def _training_started(history: History, attempt: Attempt) -> Event:
    world, done = history.world, attempt.first_step - 1
    model, training = world.model, world.training
    capacity = max(256, model.tokens_per_update // attempt.start.ranks // 2)
    return TrainingStarted(
        step=done,
        tokens=int(history.tokens[:done].sum()),
        resumed_from=f"checkpoints/step-{done:08d}" if done else "",
        resumed_host=world.cluster.hosts[0] if done else "",
        checkpoint_hosts=(world.cluster.hosts[0],),
        parameters=model.parameters,
        ranks=attempt.start.ranks,
        device=world.cluster.device,
        precision=model.precision,
        layout=training.layout,
        source_capacity=capacity,
        target_capacity=capacity,
        updates_per_epoch=training.updates_per_epoch,
        pairs=training.pairs,
        max_steps=attempt.start.max_steps,
        schedule=describe_plan(world, attempt.start.max_steps),
        target_tokens_per_update=model.tokens_per_update,
        max_tokens=training.max_tokens,
        max_minutes=training.max_minutes,
        way="graph" if world.cluster.has_gpus else "plain",
        flops_per_target_token=model.flops_per_token if world.evidence.has_flops else 0.0,
        gradient_bytes=model.gradient_bytes if world.evidence.has_gradient_bytes else 0,
    )


def _training_finished(history: History, attempt: Attempt, reason: str) -> Event:
    last = attempt.start.last_step
    return TrainingFinished(
        step=last,
        tokens=int(history.tokens[:last].sum()),
        reason=reason,
        duration_s=attempt.end_s - attempt.launched_s,
    )


def _rejection(step: int) -> Event:
    reason = "model.safetensors is shorter than its manifest says"
    return CheckpointRejected(folder=f"checkpoints/step-{step:08d}", reason=reason)


def _loss(world: World, number: int, attempt: Attempt) -> Event:
    is_host = len(attempt.start.workers) > 1 and number % 2 == 0
    host = world.cluster.hosts[len(attempt.start.workers) - 1]
    return WorkersLost(
        attempt=number + 1,
        exit_code=-9,
        rank=attempt.start.ranks - 1,
        reason="nothing was heard of it for 20 s" if is_host else "killed by SIGKILL",
        host=host if len(attempt.start.workers) > 1 else "",
    )


def evaluation_events(history: History, item: Evaluation) -> Iterator[tuple[float, Event]]:
    """The records of one look at the model."""
    world, evidence = history.world, history.world.evidence
    yield item.begin_s, EvaluationStarted(step=item.step)
    sets = [("valid", item.valid), *([("probe", item.probe)] if evidence.has_probe_loss else [])]
    translated = evidence.sentences > 0
    measured_s = item.duration_s * (0.3 if translated else 0.99) / len(sets)
    now = item.begin_s
    for name, loss in sets:
        now += measured_s
        yield (
            now,
            LossMeasured(
                step=item.step,
                set=name,
                loss=loss,
                target_tokens=evidence.valid_tokens,
                pairs=max(1, evidence.valid_tokens // 27),
                duration_s=measured_s,
            ),
        )
    end = item.begin_s + item.duration_s
    if translated:
        yield end - 2e-4, _score(world, item, end - now)
    yield (
        end - 1e-4,
        EvaluationFinished(
            step=item.step,
            duration_s=item.duration_s,
            is_best_loss=item.is_best_loss,
            is_best_bleu=item.is_best_bleu,
        ),
    )


def _score(world: World, item: Evaluation, duration_s: float) -> Event:
    sentences = world.evidence.sentences
    half = 1.96 * 26 / sentences**0.5 * min(1.0, 0.3 + item.bleu / 30)
    has_interval = sentences >= 30 and isfinite(item.bleu)
    return TranslationScored(
        step=item.step,
        set="valid",
        bleu=item.bleu,
        bleu_signature="nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.5.1",
        chrf=min(item.bleu * 1.6 + 12, 90.0),
        chrf_signature="nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.5.1",
        sentences=sentences,
        hypotheses=f"hypotheses/step-{item.step:08d}/valid.txt",
        duration_s=duration_s,
        bleu_low=max(item.bleu - half, 0.0) if has_interval else nan,
        bleu_high=item.bleu + half if has_interval else nan,
    )


def checkpoint_files(world: World) -> dict[str, int]:
    """The files of a checkpoint and their bytes."""
    weights = 4 * world.model.parameters
    return {
        "model.safetensors": weights + 12_000,
        "optimizer.safetensors": weights * (3 if world.model.has_averages else 2) + 25_000,
        "state.json": 800,
        "recipe.yaml": 1900,
        "subword.model": 250_000 + 20 * world.model.vocabulary,
        "manifest.json": 1100,
    }


def checkpoint_events(history: History, item: Checkpoint) -> Iterator[tuple[float, Event]]:
    """The records of one checkpoint, and of those that went for it."""
    files = checkpoint_files(history.world)
    yield (
        item.written_s,
        CheckpointWritten(
            step=item.step,
            folder=f"checkpoints/step-{item.step:08d}",
            bytes=sum(files.values()),
            blocked_s=item.blocked_s,
            write_s=item.write_s,
            files=files,
        ),
    )
    for step in item.removed:
        yield item.written_s + 0.001, CheckpointRemoved(step=step, folder=f"checkpoints/step-{step:08d}")
