"""A run of four ranks on two hosts with a slow link between them, whole enough to fill every part of a report."""

from pathlib import Path
from typing import Any

import numpy as np
from tests.unit.observe.verdicts.series_story import (
    START_S,
    build_checkpoint,
    build_evaluations,
    build_marks,
    build_probes,
    build_process,
    build_ranks,
    build_samples,
    build_series,
    build_start,
    build_steps,
)

from tandem.observe.figures import FIGURES
from tandem.observe.finding import Evidence, Finding
from tandem.observe.report.gather import Report
from tandem.observe.series.columns import PHASES, Marked, Series
from tandem.runlog.card import DataCard, read_card
from tandem.runlog.event import LinkMeasured, SampleTranslated, WorkersLost

STEPS, STEP_S = 1500, 1.66
HOSTS = ("alpha", "beta")
PHASES_S = {
    "data": 0.01,
    "forward": 0.14,
    "backward": 0.3,
    "exchange": 1.15,
    "optimizer": 0.04,
    "other": 0.02,
}


def card() -> DataCard:
    return read_card(Path(__file__).parents[1] / "card.json")


def build_run(**parts: Any) -> Series:
    """The run; any field of Series can be given instead."""
    noise = np.random.default_rng(7)
    wobble = noise.normal(1.0, 0.02, STEPS)
    norm = 0.7 + 4 * np.exp(-np.arange(STEPS) / 90) + noise.gamma(2, 0.05, STEPS)
    number = np.arange(1, STEPS + 1)
    steps = build_steps(
        STEPS,
        duration_s=STEP_S * wobble,
        gradient_norm=norm,
        loss=2.6 + 7 * np.exp(-number / 220) + noise.normal(0, 0.05, STEPS),
    )
    spread = noise.normal(1.0, 0.02, (4, STEPS))
    phases = {name: seconds * spread for name, seconds in PHASES_S.items()}
    at = range(250, STEPS + 1, 250)
    evaluations = build_evaluations(
        at,
        [1.7 + 4 * np.exp(-step / 300) for step in at],
        probe=[1.62 + 4 * np.exp(-step / 300) for step in at],
        bleu=[28 - 27 * np.exp(-step / 350) for step in at],
        half=0.6,
        step_s=STEP_S,
        chrf=51.0,
        duration_s=20.0,
    )
    checkpoints = tuple(
        build_checkpoint(step, time_s=START_S + step * STEP_S + 3, is_removed=step < 1000)
        for step in (500, 1000, 1500)
    )
    lost = WorkersLost(attempt=1, exit_code=-9, rank=2, reason="killed by SIGKILL", host="beta")
    whole: dict[str, Any] = {
        "name": "slow-link",
        "ended": "stopped by SIGTERM",
        "end_s": START_S + STEPS * STEP_S * 1.05,
        "processes": tuple(build_process(rank, host=HOSTS[rank // 2], world_size=4) for rank in range(4)),
        "starts": (
            (START_S, build_start(ranks=4, max_steps=2000)),
            (
                1100.0,
                build_start(step=600, ranks=4, max_steps=2000, resumed_from="checkpoints/step-00000600"),
            ),
        ),
        "steps": steps,
        "ranks": build_ranks(steps, ranks=4, hosts=("alpha", "alpha", "beta", "beta"), phases=phases),
        "redone_steps": 40,
        "redone_s": 66.0,
        "probes": build_probes(
            *((step, rank, 1.6 + 0.01 * rank, 0.46, 1.14) for step in (500, 1000, 1500) for rank in range(4))
        ),
        "evaluations": evaluations,
        "checkpoints": checkpoints,
        "translations": tuple(
            SampleTranslated(
                step=1500,
                set="valid",
                number=number,
                source="Why did she sell the bicycle?",
                reference="Warum hat sie das Fahrrad verkauft?",
                hypothesis="Warum verkaufte sie das Fahrrad?",
            )
            for number in range(2)
        ),
        "links": tuple(
            LinkMeasured(
                sender=sender,
                receiver=receiver,
                connection="open",
                latency_s=0.0003,
                bytes_per_s=235e6,
                loss=0.0,
                datagrams=100,
            )
            for sender, receiver in (HOSTS, HOSTS[::-1])
        ),
        "samples": {host: _samples(noise) for host in HOSTS},
        "marks": (*build_marks(evaluations), Marked(time_s=1090.0, rank=None, host="alpha", event=lost)),
        "card": card(),
    }
    return build_series(**{**whole, **parts})


def _samples(noise: np.random.Generator) -> Any:
    count = int(STEPS * STEP_S * 1.04)

    def around(values: tuple[float, ...]) -> Any:
        return np.array(values, np.float32)[:, None] * noise.normal(1, 0.03, (len(values), count)).astype(
            np.float32
        )

    return build_samples(
        count,
        gpus=2,
        bits_per_s=(0, 2_000_000_000),
        gpu_utilisation=np.minimum(1.0, around((0.99, 0.99))),
        gpu_power_w=around((120.0, 125.0)),
        sent_bytes_per_s=around((2e3, 220e6)),
        received_bytes_per_s=around((2e3, 219e6)),
        cpu=around((0.2,))[0],
    )


def finding(number: int = 5, **fields: Any) -> Finding:
    """An answer with all its parts."""
    whole: dict[str, Any] = {
        "number": number,
        "key": f"question_{number}",
        "question": "Was the network the bottleneck?",
        "verdict": "yes",
        "confidence": "high",
        "answer": "Yes: 1.15 s of each 1.66 s step are spent waiting for 365 MB on the link.",
        "evidence": (
            Evidence(
                name="waiting for the network",
                value=1.15,
                unit="s",
                low=1.1,
                high=1.2,
                definition="the least that a rank waited after backward, mean over steps",
                figure="exchange",
            ),
            Evidence(name="of the step", value=0.693, unit="share", definition="waiting / step"),
            Evidence(
                name="bytes a step", value=365_285_376.0, unit="bytes", definition="2·(n − 1)/n · gradients"
            ),
        ),
        "advice": "Exchange fewer bytes, or use a faster link.",
        "would_change": "A step that is as long without exchange.",
        "missing": ("the price of an hour",),
        "figure": "exchange",
    }
    return Finding(**{**whole, **fields})


def build_report(series: Series | None = None, findings: tuple[Finding, ...] | None = None) -> Report:
    """A report whose answers are given, not found."""
    told = build_run() if series is None else series
    figures = {name: drawn for name, draw in FIGURES.items() if (drawn := draw(told)) is not None}
    return Report(series=told, findings=findings if findings is not None else (finding(),), figures=figures)


def bare_run() -> Series:
    """A run of which hardly anything is known: one rank, no phases, no samples, no evaluations."""
    steps = build_steps(30)
    unknown = dict.fromkeys(PHASES, np.nan)
    nothing = build_ranks(steps, ranks=1, phases=unknown)
    return build_series(
        steps=steps, ranks=nothing, processes=(build_process(world_size=1),), starts=(), recipe={}, card=None
    )
