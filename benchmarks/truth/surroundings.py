"""What surrounds the steps of a simulated run: recipe, data card, hosts and links, checkpoints."""

from collections.abc import Mapping
from typing import Any

from benchmarks.truth.scenario import Scenario

from tandem.runlog.card import (
    Batching,
    Cleaned,
    Corpus,
    CorpusFile,
    DataCard,
    Dropped,
    HeldOut,
    Histogram,
    Languages,
    Raw,
    SideCounts,
    SideHistograms,
    SideRates,
    Stored,
    Vocabulary,
)
from tandem.runlog.event import HostDescribed, HostExamined, LinkMeasured

__all__ = [
    "build_card",
    "build_recipe",
    "checkpoint_files",
    "describe_host",
    "describe_schedule",
    "examine_host",
    "measure_link",
]

_DROPPED = {"too long": 0.011, "ratio": 0.006, "duplicate": 0.02}


def build_recipe(scenario: Scenario) -> dict[str, Any]:
    """The recipe, as the run folder has it."""
    plan = scenario.plan
    return {
        "name": scenario.name,
        "seed": scenario.seed,
        "data": {"source_language": "en", "target_language": "de", "folder": "data"},
        "batch": {"target_tokens": scenario.tokens},
        "model": {"preset": "base", "width": scenario.width, "dropout": 0.1},
        "optim": {
            "schedule": plan.schedule,
            "learning_rate": plan.learning_rate,
            "warmup_steps": plan.warmup,
            "cooldown_steps": 0,
            "clip_norm": 1.0,
            "ema_decay": 0.0,
        },
        "train": {"max_steps": plan.max_steps, "label_smoothing": 0.1},
        "evaluate": {"every_steps": plan.evaluate_every or None, "probe_pairs": plan.probe_pairs},
        "checkpoint": {"every_steps": plan.save_every or None, "keep_last": plan.keep},
    }


def describe_schedule(scenario: Scenario) -> str:
    """The sentence that training says of its schedule."""
    plan = scenario.plan
    rate, warmup = f"{plan.learning_rate:g}", plan.warmup
    formulas = {
        "transformer": f"{rate} · {scenario.width}^-0.5 · min(step^-0.5, step · {warmup}^-1.5)",
        "inverse_sqrt": f"{rate} · min(step / {warmup}, ({warmup} / step)^0.5)",
        "cosine": f"{rate} · min(1, step / {warmup}), then half a cosine wave to zero after step {plan.max_steps}",
        "constant": f"{rate} · min(1, step / {warmup})",
    }
    return f"{plan.schedule}: {formulas[plan.schedule]}"


def build_card(scenario: Scenario) -> DataCard:
    """A data card whose counts add up."""
    kept = scenario.pairs
    dropped = {reason: int(kept * share) for reason, share in _DROPPED.items()}
    lines = kept + sum(dropped.values())
    source, target = kept * 28, kept * 30
    histogram = Histogram(
        edges=(10, 20, 40, 80), counts=(kept // 4, kept // 4, kept // 4, kept - 3 * (kept // 4))
    )
    files = tuple(
        CorpusFile(name=f"train.{code}", bytes=lines * 106, sha256="0" * 64) for code in ("en", "de")
    )
    pairs_an_update = scenario.tokens / 30
    return DataCard(
        languages=Languages(source="en", target="de"),
        corpora=(Corpus(name="train", files=files, lines=lines, kept=kept, weight=1.0),),
        raw=Raw(bytes=2 * lines * 106, lines=lines),
        cleaned=Cleaned(source_bytes=kept * 104, target_bytes=kept * 112, lines=kept),
        dropped=tuple(Dropped(reason=reason, count=count, examples=()) for reason, count in dropped.items()),
        changed=(),
        words=SideCounts(source=kept * 22, target=kept * 21),
        tokens=SideCounts(source=source, target=target),
        lengths=SideHistograms(source=histogram, target=histogram),
        fertility=SideRates(source=1.27, target=1.43),
        vocabulary=Vocabulary(size=32_768, kind="bpe", unknown_pieces=0),
        stored=Stored(pairs=kept, bytes=2 * (source + target)),
        held_out=(
            HeldOut(
                name="valid",
                pairs=scenario.learning.valid_tokens // 30,
                words=SideCounts(source=60_000, target=58_000),
                tokens=SideCounts(source=75_000, target=scenario.learning.valid_tokens),
                overlap_removed=3,
                overlap_checked=True,
            ),
        ),
        batching=Batching(
            target_tokens=scenario.tokens,
            padded_share=0.04,
            packed_share=0.02,
            updates_per_epoch=max(1, int(kept / pairs_an_update)),
            pairs_per_update=pairs_an_update,
        ),
        examples=(),
    )


def checkpoint_files(scenario: Scenario) -> Mapping[str, int]:
    """Bytes of each file: weights, two moments, and what is small."""
    return {
        "manifest.json": 905,
        "model.safetensors": 4 * scenario.parameters + 15_776,
        "optimizer.safetensors": 8 * scenario.parameters + 34_048,
        "recipe.yaml": 1_604,
        "state.json": 420,
        "subword.model": 794_812,
    }


def describe_host(scenario: Scenario) -> HostDescribed:
    """What a host's sampler says first."""
    hardware = scenario.hardware
    gpus = hardware.ranks_per_host if hardware.gpu else 0
    return HostDescribed(
        cores=16,
        memory_bytes=128 * 2**30,
        gpus=(hardware.gpu,) * gpus,
        gpu_memory_bytes=(16 * 2**30,) * gpus,
        gpu_power_limit_w=(hardware.power_limit_w,) * gpus,
        interfaces=("lo", "eth0"),
        interface_bits_per_s=(0, _speed(scenario)),
        disk="nvme0n1",
    )


def _speed(scenario: Scenario) -> int:
    return int(scenario.link.bits_per_s) if scenario.hardware.hosts > 1 else 10_000_000_000


def examine_host(scenario: Scenario, host: str, *, number: int) -> HostExamined:
    """What was seen of a host before training; its clock is read with a small error."""
    hardware = scenario.hardware
    return HostExamined(
        host=host,
        address=f"10.0.0.{number + 1}",
        interface="eth0",
        interface_bits_per_s=_speed(scenario),
        tandem="0.1.0",
        python="3.11.9",
        torch="2.13.0",
        cores=16,
        memory_bytes=128 * 2**30,
        gpus=(hardware.gpu,) * (hardware.ranks_per_host if hardware.gpu else 0),
        gpu_memory_bytes=16 * 2**30 if hardware.gpu else 0,
        clock_offset_s=hardware.clock_offset_s * (number == 1) + 0.0003 * number,
        clock_uncertainty_s=0.0006,
        disk_free_bytes=400 * 10**9,
        disk_write_bytes_per_s=4.1e8,
    )


def measure_link(scenario: Scenario, sender: str, receiver: str) -> LinkMeasured:
    """What one direction of the idle link did before training."""
    link = scenario.link
    return LinkMeasured(
        sender=sender,
        receiver=receiver,
        connection="open",
        latency_s=2 * link.latency_s,
        bytes_per_s=0.94 * link.bits_per_s / 8,
        loss=0.0,
        datagrams=200,
    )
