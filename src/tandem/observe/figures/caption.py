"""What is written beside each figure: its title, its meaning, where more is said, and why it may not be there."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["CAPTIONS", "Caption"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """The words of one figure."""

    title: str
    meaning: str
    missing: str
    """What was not measured, where there is no figure."""
    section: str
    """Name of the section of docs/verdicts.md that says what is concluded from it; may be empty."""


CAPTIONS: Mapping[str, Caption] = {
    "losses": Caption(
        title="Losses",
        meaning="Negative log-likelihood a target token, without smoothing: lower is better. The training curve is "
        "made with dropout and of other text at every step, so it may lie above the valid curve. The probe "
        "is a fixed set of training pairs, measured exactly like the valid set: only the room between these"
        " two tells of overfitting. Of an imported run the training curve is what that tool minimised.",
        missing="No loss was logged.",
        section="overfitting",
    ),
    "bleu": Caption(
        title="Scores",
        meaning="BLEU of real translations by beam search, detokenised, as sacreBLEU computes it. Bars, or where there"
        " are many a band, are 95 % intervals by resampling the sentences of the set: scores whose intervals"
        " overlap much may be equal. A score that another tool has written is shown under its own name: it is no"
        " BLEU of translations unless that tool says so.",
        missing="Nothing was translated and scored.",
        section="trained",
    ),
    "learning_rate": Caption(
        title="Learning rate",
        meaning="The dashed curve is what the formula of the recipe gives up to the last planned step, the solid "
        "one what the steps used. They should lie on one another.",
        missing="No learning rate was logged.",
        section="schedule",
    ),
    "gradient_norm": Caption(
        title="Gradient norm",
        meaning="The length of all gradients together, before clipping, on a scale of powers of ten. Single peaks are "
        "usual; a curve that climbs for long comes before a run that diverges.",
        missing="No gradient norm was logged.",
        section="",
    ),
    "throughput": Caption(
        title="Speed",
        meaning="Target tokens a second that all ranks together trained on; padding does not count, and neither "
        "does the time of evaluations and checkpoints.",
        missing="Target tokens of the steps were not logged.",
        section="step_time",
    ),
    "anatomy": Caption(
        title="What a step's time goes into",
        meaning="Each colour is the mean over the ranks of the time in one phase, stacked to the whole step. "
        "Hatched phases are waiting: for data, and for gradients after the own work was done. The least wait of the "
        "ranks is the network's, what others wait more is waiting for the slowest. Diamonds are evaluations, "
        "triangles checkpoints, crosses restarts.",
        missing="The phases of the steps were not measured.",
        section="step_network",
    ),
    "time_split": Caption(
        title="Where the time went",
        meaning="The wall time of the whole run, from its first record to its last, split into what it was spent "
        "on.",
        missing="The log has no wall-clock times.",
        section="duration",
    ),
    "gpus": Caption(
        title="GPUs of every host",
        meaning="Means over the GPUs of a host; with several, the band is from the lowest of them to the highest. "
        "Utilisation is the share of time in which some kernel ran: one that"
        " waits for the network counts as busy, so 100 % proves nothing. Power is harder to fake: a GPU "
        "that computes draws most of what it may.",
        missing="No GPU was sampled.",
        section="gpus",
    ),
    "network": Caption(
        title="Network of every host",
        meaning="Bytes a second that crossed the interfaces of each host. Sent and received are apart: a link "
        "carries its full speed in each direction. Beside the host's name is what its link delivers, measured before "
        "training or the highest that was seen, and the nominal speed of the interface, which proves nothing. "
        "`lo` is what ranks of one host send each other: it is "
        "shown where all of them are on one, or where nothing else carried anything.",
        missing="No network interface was sampled.",
        section="network",
    ),
    "cpu": Caption(
        title="Processor and memory of every host",
        meaning="Share of all cores that was busy, and of memory in use without caches.",
        missing="No host was sampled.",
        section="",
    ),
    "step_times": Caption(
        title="Duration of a step",
        meaning="Wall time from the end of the step before to the end of the step, of rank 0; evaluations and "
        "waiting for checkpoints are not in it. Where a point stands for many steps it is their mean, and "
        "the band goes from the shortest to the longest.",
        missing="Durations of the steps were not logged.",
        section="step_time",
    ),
    "step_bytes": Caption(
        title="Bytes a step on the network",
        meaning="What crossed the interfaces of each host, divided by the steps done in that time. The dashed line "
        "is what summing the gradients over a ring needs: 2·(n − 1)/n of their bytes in each direction, and on one "
        "host as much for every rank.",
        missing="Bytes on the network were not sampled, or there was one rank only.",
        section="step_network",
    ),
    "exchange": Caption(
        title="What the exchange of gradients costs",
        meaning="The rank that comes last waits for the network alone: the least wait of a step is the network's, "
        "and what other ranks wait more is waiting for the slowest. This is a lower bound, since an "
        "exchange can also slow the computing beside it. The points are the truth where it was probed: the "
        "same batches with exchange less without.",
        missing="Waits for gradients were not measured, or there was one rank only.",
        section="network",
    ),
    "checkpoint_parts": Caption(
        title="Parts of a checkpoint",
        meaning="The files of the newest checkpoint by size. 1 MB is 1,000,000 bytes.",
        missing="No checkpoint was written.",
        section="checkpoint_size",
    ),
    "dropped": Caption(
        title="What became of the pairs that were read",
        meaning="The upper bar is every pair that was read. The lower bars are the dropped ones by reason, at a "
        "larger scale, because each is a small part. A pair is counted under the first reason that fits.",
        missing="The run has no data card.",
        section="data",
    ),
    "lengths": Caption(
        title="Sentence lengths",
        meaning="How long sentences are, in subword pieces without the end mark. The height is the share of that "
        "side's sentences at each length; both sides use the same scale. Point at a step for its numbers.",
        missing="The run has no data card.",
        section="data",
    ),
}
