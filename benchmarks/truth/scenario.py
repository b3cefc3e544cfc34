"""What a simulated run is made of: how it learns, where it computes, its network and its reader, what befalls it."""

import math
from dataclasses import dataclass, field

__all__ = ["Hardware", "Learning", "Link", "Plan", "Reader", "Scenario", "Seen", "Work"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """The true curves: valid loss is `floor + span · (1 + step/scale)^-power`, and BLEU goes to `top` alike."""

    floor: float = 1.9
    span: float = 7.0
    scale: float = 300.0
    power: float = 1.0
    top: float = 27.0
    bleu_scale: float = 900.0
    bleu_power: float = 1.3
    noise: float = 0.006
    """From one evaluation to the next, in valid loss."""
    bleu_noise: float = 0.15
    cycle: float = 0.0
    """Height of a slow wave in the valid loss, as of an epoch's order."""
    cycle_steps: float = 1000.0
    turns_at: float = math.inf
    """Step at which the valid loss has its minimum; from there on it rises."""
    rises_by: float = 0.0
    """How much the valid loss has risen when twice as many steps are done."""
    bleu_falls_by: float = 0.0
    """The same of BLEU."""
    gap: float = 0.08
    """Valid less probe loss before the minimum."""
    breaks_at: int | None = None
    """Step at which training diverges."""
    breaks_to: float = math.nan
    """Loss after that; nan: gradients are not finite from there on and every step is skipped."""
    spikes_at: int = 0
    """Step at which the loss jumps up by `spikes_by`, to come down again over `spike_steps`; 0: never."""
    spike_steps: float = 150.0
    spikes_by: float = 3.0
    lost_evaluation: int = -1
    """Evaluation whose loss is not a number; negative: none."""
    valid_tokens: int = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """Hosts, the ranks on each of them, and what one rank's device can do."""

    hosts: int = 2
    ranks_per_host: int = 1
    gpu: str = "Tesla V100-SXM2-16GB"
    """Empty for CPUs."""
    peak_flops_per_s: float = 14e12
    power_limit_w: float = 300.0
    clock_offset_s: float = 0.0
    """How far the second host's wall clock is ahead of the first one's."""

    @property
    def ranks(self) -> int:
        """Of all hosts."""
        return self.hosts * self.ranks_per_host


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Computing of one rank in a step, and everything that disturbs it."""

    compute_s: float = 0.4
    """Forward and backward of an update's batches on one rank."""
    batches: int = 1
    """On one rank, of which the last one is exchanged."""
    jitter: float = 0.02
    tails: float = 0.004
    """Share of steps in which one rank is held up, up to several times as long."""
    pause_every_s: float = 60.0
    """Garbage collection and the like, on every rank at its own time."""
    pause_s: float = 0.15
    slow_rank: int = -1
    slow_factor: float = 1.0
    drift: float = 0.0
    """Growth of computing over the run, as a share."""
    throttled_from: float = 1.0
    """Share of the run after which the GPUs are too hot."""
    throttled_factor: float = 1.0
    flops_share: float = 0.5
    """Share of the peak that the device reaches while it computes."""
    optimizer_s: float = 0.008
    other_s: float = 0.004


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Where batches come from: each needs `batch_s`, and `ahead` may lie in wait."""

    batch_s: float = 0.02
    ahead: int = 8
    jitter: float = 0.2
    slow_rank: int = -1
    slow_factor: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What gradients go over; between ranks of one host it is memory."""

    bits_per_s: float = 25e9
    efficiency: float = 0.93
    latency_s: float = 60e-6
    bucket_bytes: int = 25_000_000
    slows_compute: float = 0.04
    """By how much backward is longer while gradients are sent beside it."""
    background: float = 0.0
    """Share of the link that other programs take in their busy times."""
    background_s: float = 90.0
    """How long busy and idle times last, each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How far the run goes, what it looks at and writes on the way, and how it ends."""

    steps: int = 4000
    """That were done in the end."""
    max_steps: int = 4000
    schedule: str = "inverse_sqrt"
    learning_rate: float = 7e-4
    warmup: int = 400
    evaluate_every: int = 200
    """0: never."""
    evaluation_s: float = 8.0
    scores: bool = True
    probe_pairs: int = 2000
    save_every: int = 1000
    """0: never."""
    save_fails_after: int = -1
    """Checkpoints from this one on find the disk full; negative: none does."""
    keep: int = 3
    blocked_s: float = 0.4
    startup_s: float = 14.0
    first_step_s: float = 3.0
    """By which the first step after a start is longer."""
    killed_at: tuple[int, ...] = ()
    """Steps after which a worker dies and all start again from the newest checkpoint."""
    restart_s: float = 25.0
    rate_restarts_at: int = 0
    """Step from which the schedule begins anew; 0: never."""
    ending: str = "finished"
    """`finished`; `running` and `killed`: the logs just end; `stopped`: somebody asked for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is measured of the run, besides its steps."""

    probes: bool = True
    samples: bool = True
    peak: bool = True
    probe_losses: bool = True
    links: bool = True
    ranks: int = 1_000
    """So many ranks' logs are there; those of other hosts may have been lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One simulated run."""

    name: str
    story: str
    """What it is, in a sentence."""
    parameters: int = 60_880_896
    width: int = 512
    tokens: int = 12_000
    """Target tokens an update."""
    pairs: int = 4_500_000
    learning: Learning = field(default_factory=Learning)
    hardware: Hardware = field(default_factory=Hardware)
    work: Work = field(default_factory=Work)
    reader: Reader = field(default_factory=Reader)
    link: Link = field(default_factory=Link)
    plan: Plan = field(default_factory=Plan)
    seen: Seen = field(default_factory=Seen)
    seed: int = 1

    @property
    def gradient_bytes(self) -> int:
        """In single precision."""
        return 4 * self.parameters

    @property
    def ring_bytes(self) -> float:
        """That each rank sends in a step."""
        ranks = self.hardware.ranks
        return 2 * (ranks - 1) / ranks * self.gradient_bytes
