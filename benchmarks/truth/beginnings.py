"""How a simulated run begins, and begins again after a loss."""

from benchmarks.truth.surroundings import build_card, describe_schedule, examine_host, measure_link
from benchmarks.truth.telling import Telling

from tandem.runlog.event import (
    BatchesPlanned,
    DataPrepared,
    DeviceMeasured,
    RoundStarted,
    RunStarted,
    TrainingStarted,
    WorkersLost,
)

__all__ = ["tell_beginning", "tell_start"]


def tell_beginning(telling: Telling) -> None:
    """Say what was there before any rank: the data, the hosts, their links."""
    scenario, journal, head = telling.scenario, telling.journal, telling.hosts[0]
    journal.host(head, _started(telling, head), at_s=0.0)
    journal.host(head, DataPrepared(card=build_card(scenario).to_json()), at_s=1.5)
    if len(telling.hosts) == 1:
        return
    for number, host in enumerate(telling.hosts):
        journal.host(head, examine_host(scenario, host, number=number), at_s=2.0 + number / 10)
    if scenario.seen.links:
        for number, host in enumerate(telling.hosts):
            other = telling.hosts[(number + 1) % len(telling.hosts)]
            journal.host(head, measure_link(scenario, host, other), at_s=3.0 + number / 10)
    _tell_round(telling, 1, at_s=4.0)


def _tell_round(telling: Telling, number: int, *, at_s: float) -> None:
    workers = dict.fromkeys(telling.hosts, telling.scenario.hardware.ranks_per_host)
    event = RoundStarted(
        round=number,
        hosts=telling.hosts,
        workers=workers,
        address="10.0.0.1",
        interfaces=("eth0",) * len(telling.hosts),
    )
    telling.journal.host(telling.hosts[0], event, at_s=at_s)


def _started(telling: Telling, host: str) -> RunStarted:
    return RunStarted(
        run=telling.scenario.name,
        tandem="0.1.0",
        command=("tandem", "train", "recipe.yaml"),
        recipe="0" * 64,
        world_size=telling.scenario.hardware.ranks,
        host=host,
        python="3.11.9",
        torch="2.13.0",
    )


def tell_start(telling: Telling, at: int, starts: dict[int, int]) -> float:
    """Start the ranks, or start them again after a loss; returns when they were ready."""
    scenario, plan, journal = telling.scenario, telling.scenario.plan, telling.journal
    head = telling.hosts[0]
    now_s = telling.shift_s + (float(telling.timing.end_s[at - 1].max()) if at else 0.0)
    if at:
        lost = WorkersLost(
            attempt=list(starts).index(at), exit_code=-9, rank=0, reason="a worker was killed", host=head
        )
        journal.host(head, lost, at_s=now_s + 5.0)
        telling.shift_s += plan.restart_s
        now_s += plan.restart_s
        if len(telling.hosts) > 1:
            _tell_round(telling, 1 + list(starts).index(at), at_s=now_s - 6.0)
    telling.shift_s += plan.startup_s
    for rank in range(telling.logged):
        host = telling.host(rank)
        journal.rank(rank, _started(telling, host), at_s=now_s + 0.5, host=host)
        if scenario.seen.peak:
            measured = DeviceMeasured(
                device=scenario.hardware.gpu or "cpu",
                precision="fp32",
                flops_per_s=scenario.hardware.peak_flops_per_s,
                duration_s=0.3,
            )
            journal.rank(rank, measured, at_s=now_s + 2.0, host=host)
    updates = max(1, scenario.pairs * 30 // scenario.tokens)
    planned = BatchesPlanned(pairs=scenario.pairs, updates_per_epoch=updates, padding_share=0.04)
    journal.rank(0, planned, at_s=now_s + 3.0, host=head)
    ready_s = now_s + plan.startup_s - 0.1
    journal.rank(0, _training(telling, starts[at], updates), at_s=ready_s, host=head)
    return ready_s


def _training(telling: Telling, begun: int, updates: int) -> TrainingStarted:
    scenario, plan, work = telling.scenario, telling.scenario.plan, telling.scenario.work
    ranks = scenario.hardware.ranks
    flops = work.flops_share * scenario.hardware.peak_flops_per_s * work.compute_s * ranks / scenario.tokens
    return TrainingStarted(
        step=begun,
        tokens=begun * scenario.tokens,
        resumed_from=f"checkpoints/step-{begun:08d}" if begun else "",
        parameters=scenario.parameters,
        ranks=ranks,
        device="cuda" if scenario.hardware.gpu else "cpu",
        precision="fp32",
        layout="padded",
        source_capacity=scenario.tokens // ranks,
        target_capacity=scenario.tokens // ranks,
        updates_per_epoch=updates,
        pairs=scenario.pairs,
        max_steps=plan.max_steps,
        schedule=describe_schedule(scenario),
        target_tokens_per_update=scenario.tokens,
        checkpoint_hosts=(telling.hosts[0],),
        flops_per_target_token=flops if scenario.seen.peak else 0.0,
        gradient_bytes=scenario.gradient_bytes,
    )
