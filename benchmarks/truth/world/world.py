"""A training run to be simulated: everything that decides what happens, and what of it is written down."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = [
    "Clocks",
    "Cluster",
    "Compute",
    "Ending",
    "Evidence",
    "Learning",
    "Loader",
    "Model",
    "Network",
    "Pauses",
    "Scope",
    "Shape",
    "Stall",
    "Start",
    "Training",
    "World",
]

Ending: TypeAlias = Literal["finish", "stop", "kill"]
Scope: TypeAlias = Literal["rank", "host", "all"]
Shape: TypeAlias = Literal["power", "exponential", "plateau"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The machines."""

    hosts: tuple[str, ...]
    device: str
    """`cpu`, or the name of the GPUs."""
    cores: int
    launcher: Literal["hosts", "torchrun", "one host"]
    """`hosts` has a head that examines hosts and starts lost workers again."""

    @property
    def has_gpus(self) -> bool:
        """Whether ranks compute on GPUs."""
        return self.device != "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One start of the ranks, and how it ends."""

    workers: tuple[int, ...]
    """Ranks on each of the first hosts."""
    last_step: int
    ending: Ending
    max_steps: int
    """Of the plan that this start follows."""
    gap_s: float
    """From the end of the start before."""
    is_rejected: bool = False
    """Whether the newest checkpoint is found damaged, so that it goes on from the one before."""

    @property
    def ranks(self) -> int:
        """All of them."""
        return sum(self.workers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What is trained."""

    parameters: int
    vocabulary: int
    width: int
    tokens_per_update: int
    precision: str
    peak_share: float
    """Share of the devices' peak that is reached while computing."""
    has_averages: bool
    """Whether checkpoints have a running average of the weights beside the weights."""

    @property
    def gradient_bytes(self) -> int:
        """Of the sum over ranks: fp32."""
        return 4 * self.parameters

    @property
    def flops_per_token(self) -> float:
        """Forward and backward."""
        return 6.6 * self.parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """Something that stops computing now and then."""

    scope: Scope
    number: int
    """Of the rank or host."""
    seconds: float
    every_steps: int = 0
    """Period in steps; 0 means none."""
    every_s: float = 0.0
    """Period on the clock; 0 means none."""
    chance: float = 0.0
    """For a step, where it is random."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """How long ranks compute."""

    step_s: float
    """Forward and backward of a mean update on a healthy rank."""
    backward_share: float
    optimizer_share: float
    """Of `step_s`, as the next one."""
    other_share: float
    batch_spread: float
    """Standard deviation of the size of updates, as a share; alike on all ranks."""
    imbalance: float
    """The same for what differs between ranks because batches do."""
    jitter: float
    """The same for what the machine adds to each rank and step."""
    wander: float
    """The same for what changes slowly on each host."""
    slow_ranks: tuple[tuple[int, float], ...]
    """Ranks that are slower, and by what factor."""
    slow_hosts: tuple[tuple[int, float], ...]
    heat: tuple[int, float, float] | None
    """A host, the factor in the end, and the share of the run after which it begins."""
    first_step_s: float
    """What the first step after a start takes more."""
    stalls: tuple[Stall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What carries the exchange."""

    bytes_per_s: tuple[float, ...]
    """What the link of each host really delivers in each direction."""
    nominal_bits_per_s: int
    """What its driver claims; 0 where it does not know."""
    latency_s: float
    internal_bytes_per_s: float
    """Between ranks of one host."""
    buckets: int
    first_bucket: float
    """Share of backward after which the first bucket is complete."""
    slowing: float
    """By how much computing is slower while gradients are under way, as a share."""
    jitter: float
    changes: tuple[tuple[float, float], ...]
    """Share of the run from which the links have another speed, and the factor."""
    stall_chance: float
    """For a step, of a link that stands still."""
    stall_s: float
    loss_chance: float
    """For a step, of a packet that is lost and waited for."""
    timeout_s: float
    background_bytes_per_s: float
    """Traffic of others, which the interfaces count too."""
    has_mesh: bool
    """Whether ranks reach the network through a process on their host, so that loopback carries the bytes too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loader:
    """Batches made in the background, by one thread for each rank."""

    build_s: float
    spread: float
    depth: int
    slow_rank: int
    """-1 where there is none."""
    slow_factor: float
    stall_chance: float
    stall_s: float
    epoch_s: float
    """What the first update of an epoch takes more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """What training stops for."""

    evaluate_every: int
    """0 where nothing is evaluated."""
    loss_s: float
    """To measure the loss on the valid set."""
    translate_s: float
    """0 where nothing is translated."""
    checkpoint_every: int
    """Besides the checkpoints after evaluations; 0 for none."""
    blocked_s: float
    write_s: float
    launch_s: float
    prepare_s: float
    """Data preparation before the first start; 0 where it was prepared before."""
    loop_s: float
    """Between the end of a step and the beginning of a pause, and after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """The plan of the learning rate and of the data."""

    schedule: str
    learning_rate: float
    warmup: int
    cooldown: int
    max_tokens: int
    max_minutes: float
    updates_per_epoch: int
    pairs: int
    layout: str
    deviation: tuple[int, float] | None
    """A step from which the rate differs from the plan, and the factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """What the model learns: the loss on the valid set falls with the sum of learning rates."""

    shape: Shape
    floor: float
    """What remains in the end."""
    drop: float
    """From the first loss to the floor."""
    exponent: float
    scale: float
    """Steps at the highest rate after which the fall begins to flatten."""
    annealing: float
    """Loss that the highest learning rate costs, and that its decay gives back."""
    plateau_loss: float
    gap: float
    """By how much training pairs are better in the end, without overfitting."""
    overfit_step: float
    """From which pairs are learnt by heart; inf for never."""
    overfit: float
    """Rise of the loss over as many steps as the run has."""
    overfit_power: float
    forgotten_share: float
    """Share of that rise that BLEU feels."""
    diverge_step: int
    """0 for never."""
    diverge_to: float
    """Loss to which it comes apart; inf where it is no number any more."""
    spike: tuple[int, float, float] | None
    """A step at which the loss jumps, by how much, and the steps in which it comes back."""
    noise: float
    """Standard deviation of an evaluation's loss."""
    noise_memory: float
    """Correlation of one evaluation's noise with the next."""
    best_bleu: float
    bleu_slope: float
    bleu_noise: float
    step_noise: float
    """Of the loss of a step's batch."""
    dropout_cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """How the hosts' clocks differ from true time."""

    offset_s: tuple[float, ...]
    drift: tuple[float, ...]
    jump: tuple[int, float, float] | None
    """A host, the share of the run after which its clock is set, and by how much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What of the run is written down, and what is lost afterwards."""

    probe_every: int
    """0 for no probes, -1 for the early ones alone."""
    sample_s: float
    """0 where no host is sampled."""
    unsampled_hosts: tuple[int, ...]
    sample_gap: tuple[float, float] | None
    """Shares of the run between which samples are missing."""
    has_peak: bool
    has_flops: bool
    has_gradient_bytes: bool
    has_card: bool
    has_links: bool
    """Whether hosts and links were examined before the start."""
    has_probe_loss: bool
    sentences: int
    """Translated in an evaluation; 0 for none."""
    valid_tokens: int
    lost_ranks: tuple[int, ...]
    """Whose logs are missing altogether."""
    cut_ranks: tuple[tuple[int, float], ...]
    """Whose logs end early, and at what share of the run."""
    torn_lines: int
    """Lines that are spoilt in the middle of files."""
    doubled: tuple[int, int] | None
    """A rank whose log has a block of lines twice, and the number of lines."""
    dropped: tuple[int, float, int] | None
    """A rank whose disk refused lines, from what share of its log, and how many."""
    has_recipe: bool
    ends_inside_line: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A whole run."""

    seed: int
    cluster: Cluster
    starts: tuple[Start, ...]
    model: Model
    compute: Compute
    network: Network
    loader: Loader
    pauses: Pauses
    training: Training
    learning: Learning
    clocks: Clocks
    evidence: Evidence

    @property
    def steps(self) -> int:
        """The last step made."""
        return max(start.last_step for start in self.starts)

    @property
    def most_ranks(self) -> int:
        """Of any start."""
        return max(start.ranks for start in self.starts)
