"""Runs whose ranks compute, wait and exchange for known times, and an imported one, for tests of what is said of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from tests.unit.observe.verdicts.series_story import (
    build_imported,
    build_probes,
    build_ranks,
    build_samples,
    build_series,
    build_start,
    build_steps,
)

from tandem.observe.series.columns import PHASES, Series
from tandem.runlog.event import DeviceMeasured, LinkMeasured

GRADIENT_BYTES = 243_523_584
REFERENCE: dict[str, Any] = {
    "gpus": 4,
    "hosts": 2,
    "pairs_per_gpu": 128,
    "observed_nic_bytes_per_s": 220e6,
    "observed_gpu_utilisation": 1.0,
    "save_checkpoint_steps": 299_998,
}


def exchanged(
    *,
    compute_s: float = 1.0,
    network_s: float = 0.1,
    slowing_s: float = 0.0,
    data_s: float = 0.01,
    late_s: float = 0.0,
    late_data_s: float = 0.0,
    steps: int = 400,
    hosts: Sequence[str] = ("alpha", "beta"),
    probed: bool | Sequence[int] = True,
    peak: float | None = 10e12,
    **parts: Any,
) -> Series:
    """A rank a host named; the last one may be late, and the exchange may slow the computing beside it.

    `probed` may name the steps that are also done without the exchange.
    """
    random = np.random.default_rng(7)
    shape = (len(hosts), steps)
    compute = compute_s * (1 + 0.02 * random.standard_normal(shape)) + slowing_s
    data = data_s * (1 + 0.1 * random.random(shape))
    compute[-1] += late_s
    data[-1] += late_data_s
    wait = network_s * (1 + 0.05 * random.standard_normal(steps)) if len(hosts) > 1 else np.zeros(steps)
    end = (compute + data).max(axis=0) + wait
    phases = {
        "data": data,
        "forward": compute * 0.35,
        "backward": compute * 0.65,
        "exchange": end - compute - data,
        "optimizer": 0.03,
        "other": 0.01,
    }
    rows = []
    for step in probed if not isinstance(probed, bool) else (20, 60, 180) if probed else ():
        if len(hosts) == 1 or step >= steps:
            continue
        together = float(compute[:, step].max() + wait[step])
        for rank in range(len(hosts)):
            own = float(compute[rank, step])
            alone = (own - slowing_s) * (1 + 0.01 * float(random.standard_normal()))
            rows.append((step, rank, together, alone, together - own))
    made = build_steps(steps, duration_s=end + 0.04)
    device = DeviceMeasured(device="NVIDIA V100", precision="fp16", flops_per_s=peak or 0.0, duration_s=0.2)
    whole = {
        "steps": made,
        "ranks": build_ranks(made, ranks=len(hosts), hosts=hosts, phases=phases, sent_bytes=GRADIENT_BYTES),
        "probes": build_probes(*rows),
        "starts": ((5.0, build_start(ranks=len(hosts), max_steps=steps)),),
        "devices": (device,) * len(hosts) if peak else (),
    }
    return build_series(**{**whole, **parts})


def starved(*, reader_s: float = 2.0, network_s: float = 0.6, steps: int = 300) -> Series:
    """Two hosts whose readers work ahead and need longer for a batch than a step would take."""
    series = exchanged(network_s=network_s, data_s=0.0, steps=steps)
    phases = {name: column.copy() for name, column in series.ranks.phases.items()}
    rest = np.sum(list(phases.values()), axis=0)
    pace = reader_s * (1 + 0.01 * np.random.default_rng(3).standard_normal(steps))
    phases["data"][:, 1:] = np.maximum(0.0, pace[1:] - rest[:, :-1])
    return replace(series, ranks=replace(series.ranks, phases=phases))


def link(bytes_per_s: float) -> LinkMeasured:
    return LinkMeasured(
        sender="alpha",
        receiver="beta",
        connection="open",
        latency_s=2e-4,
        bytes_per_s=bytes_per_s,
        loss=0.0,
        datagrams=0,
    )


def carried(series: Series, bytes_a_step: float) -> dict[str, Any]:
    """Samples of both hosts while the series trains: so much in each direction of eth0, and more on lo."""
    steps = series.steps
    rate = bytes_a_step * len(steps) / float(steps.duration_s.sum())
    both = np.asarray([[1e9], [rate]], np.float32) * np.ones(int(series.end_s) + 5, np.float32)
    count = both.shape[1]
    return {
        host: build_samples(
            count, begin_s=float(steps.time_s[0]) + 1.0, sent_bytes_per_s=both, received_bytes_per_s=both
        )
        for host in ("alpha", "beta")
    }


def imported(*, step_s: float = 1.66, precision: str = "fp32", ranks: int = 4, **facts: Any) -> Series:
    """What an OpenSeq2Seq log of the reference run says, and what its user has seen."""
    steps = build_steps(45, duration_s=step_s, first=100, every=100)
    start = build_start(
        ranks=ranks, gradient_bytes=0, flops_per_target_token=0.0, device="", precision=precision
    )
    return build_series(
        imported=build_imported(facts),
        steps=steps,
        ranks=build_ranks(steps, ranks=1, phases=dict.fromkeys(PHASES, np.nan), sent_bytes=np.nan),
        starts=((0.0, start),),
    )
