"""A run in a line, and the tables below the answers: evaluations, checkpoints, hosts, versions."""

import math
from datetime import UTC, datetime

import numpy as np

from tandem.observe.delivered import delivered_by, speeds_text
from tandem.observe.numbers import count, decimal, duration, megabytes, short_count
from tandem.observe.series.columns import Checkpoint, Evaluation, Series
from tandem.observe.tabular import Table
from tandem.runlog.event import TrainingStarted

__all__ = [
    "begun_at",
    "checkpoints_table",
    "evaluations_table",
    "has_clock",
    "headline",
    "hosts_table",
    "links_table",
    "notes",
    "process_ranks",
    "processes_table",
    "state_of",
]

UNKNOWN = "–"
MOST_ROWS = 60
"""Of a table; of longer ones the last are shown."""


def begun_at(series: Series) -> str:
    """When the first record was written, in UTC."""
    return datetime.fromtimestamp(series.begun_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC")


def has_clock(series: Series) -> bool:
    """Whether times of the log are those of a clock; an imported run may have none."""
    return series.imported is None or series.imported.times == "wall"


def state_of(series: Series) -> str:
    """Whether the run ended, and how; one that did not say so is going on, or was killed."""
    if series.imported is not None:
        return f"imported from {series.imported.tool}"
    if series.ended:
        return f"ended: {series.ended}"
    return "closed" if series.is_closed else "not ended: it is going on, or was killed"


def headline(series: Series) -> str:
    """What the run is and where it stands, in one sentence."""
    steps = int(series.steps.step[-1]) if len(series.steps) else 0
    parts = [f"{count(steps)} steps" + (f" in {duration(series.end_s)}" if has_clock(series) else "")]
    if (started := series.started) is not None:
        parts += _where(series, started)
        if started.parameters:
            parts.append(f"{short_count(started.parameters)} parameters")
        if started.precision:
            parts.append(started.precision)
    return f"{', '.join(parts)}; {state_of(series)}."


def _where(series: Series, started: TrainingStarted) -> list[str]:
    """Ranks, device and hosts, as far as they are known."""
    ranks = f"{count(started.ranks)} rank{'s' * (started.ranks != 1)}" if started.ranks else ""
    device = f"on {started.device}" if started.device else ""
    hosts = {process.host for process in series.processes if process.host}
    found = [" ".join(filter(None, (ranks, device))), f"{len(hosts)} hosts" if len(hosts) > 1 else ""]
    return [each for each in found if each]


def process_ranks(series: Series) -> tuple[int, ...]:
    """The rank of each process; logs of some ranks may be missing."""
    return series.process_ranks or tuple(range(len(series.processes)))


def _unlogged(series: Series) -> int:
    """How many ranks there were of which nothing is in the log."""
    logged = np.isfinite(series.ranks.duration_s).any(axis=1) | np.array(series.ranks.hosts, np.bool_)
    return 0 if series.imported is not None else _rank_count(series) - int(logged.sum())


def _rank_count(series: Series) -> int:
    """Of very many without a log some have no row."""
    return max(series.ranks.ranks, series.started.ranks if series.started is not None else 0)


def notes(series: Series) -> tuple[str, ...]:
    """What a reader must know of the log before believing anything."""
    found = []
    if unlogged := _unlogged(series):
        found.append(
            f"The logs of {count(unlogged)} of {count(_rank_count(series))} ranks are not here: look for them on the "
            "other hosts' disks."
        )
    if series.damaged:
        found.append(f"{count(series.damaged)} lines of the log could not be read and are left out.")
    if series.dropped:
        found.append(f"{count(series.dropped)} events are missing: the log's writers could not keep them.")
    if series.redone_steps:
        found.append(
            f"{count(series.redone_steps)} steps were done twice because a restart went back; they count once."
        )
    if series.imported is not None:
        files = ", ".join(series.imported.files)
        found.append(f"Read from files of another tool ({files}): only what they hold can be told.")
    return tuple(found)


def evaluations_table(series: Series) -> Table:
    """Every look at the model, with its scores."""
    shown = series.evaluations[-MOST_ROWS:]
    names = sorted({name for each in shown for name in each.scores})
    rows = tuple(
        (
            count(each.step),
            _number(each.valid_loss, 4),
            _number(each.probe_loss, 4),
            _bleu(each),
            _number(each.chrf, 1),
            *(_number(each.scores.get(name, math.nan), 4) for name in names),
            _best(each),
        )
        for each in shown
    )
    signature = next((each.bleu_signature for each in reversed(shown) if each.bleu_signature), "")
    more = _left_out(len(series.evaluations))
    return Table(
        title="Evaluations",
        columns=("step", "valid loss", "probe loss", "BLEU (95 %)", "chrF", *names, "best so far"),
        rows=rows,
        names=0,
        note=" ".join(filter(None, (more, f"BLEU by sacreBLEU, {signature}." if signature else ""))),
    )


def _left_out(rows: int) -> str:
    return f"The last {MOST_ROWS} of {count(rows)}." if rows > MOST_ROWS else ""


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else UNKNOWN


def _bleu(each: Evaluation) -> str:
    if not math.isfinite(each.bleu):
        return UNKNOWN
    if not math.isfinite(each.bleu_low + each.bleu_high):
        return f"{each.bleu:.1f}"
    return f"{each.bleu:.1f} ({each.bleu_low:.1f} to {each.bleu_high:.1f})"


def _best(each: Evaluation) -> str:
    kinds = (("loss", each.is_best_loss), ("BLEU", each.is_best_bleu))
    return ", ".join(name for name, best in kinds if best)


def checkpoints_table(series: Series) -> Table:
    """Every checkpoint that was written."""
    shown = series.checkpoints[-MOST_ROWS:]
    return Table(
        title="Checkpoints",
        columns=("folder", "step", "size", "files", "training waited", "written in", "still kept"),
        rows=tuple(
            (
                each.folder,
                count(each.step),
                megabytes(each.bytes) if each.bytes else UNKNOWN,
                count(len(each.files)) if each.files else UNKNOWN,
                _seconds(each.blocked_s),
                _seconds(each.write_s),
                _kept(each, series),
            )
            for each in shown
        ),
        note=_left_out(len(series.checkpoints)) if shown else "No checkpoint was written.",
    )


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if math.isfinite(value) else UNKNOWN


def _kept(each: Checkpoint, series: Series) -> str:
    if each.is_removed or each.is_rejected:
        return "no" if each.is_removed else "spoilt"
    # What another tool deleted later, its files do not tell.
    return "yes" if series.imported is None else UNKNOWN


def hosts_table(series: Series) -> Table:
    """The hosts that were sampled, and what they have."""
    return Table(
        title="Hosts",
        columns=("host", "GPUs", "interfaces", "cores", "memory"),
        rows=tuple(
            (
                host,
                _grouped(samples.described.gpus) or "none",
                ", ".join(_interface(series, host, row) for row in range(len(samples.described.interfaces))),
                count(samples.described.cores) if samples.described.cores > 0 else UNKNOWN,
                _gigabytes(samples.described.memory_bytes),
            )
            for host, samples in series.samples.items()
        ),
        names=3,
        note="" if series.samples else "No host was sampled.",
    )


def _gigabytes(size_bytes: int) -> str:
    return f"{decimal(size_bytes / 1e9)} GB" if size_bytes > 0 else UNKNOWN


def _grouped(names: tuple[str, ...]) -> str:
    return ", ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))


def _interface(series: Series, host: str, row: int) -> str:
    described = series.samples[host].described
    speeds = speeds_text(
        delivered_by(series, host, row), nominal_bits_per_s=described.interface_bits_per_s[row]
    )
    name = described.interfaces[row]
    return f"{name} ({speeds})" if speeds else name


def links_table(series: Series) -> Table:
    """What was measured between hosts before training."""
    return Table(
        title="Links, as measured before training",
        columns=("from", "to", "connection", "speed", "there and back", "loss"),
        rows=tuple(
            (
                link.sender,
                link.receiver,
                link.connection,
                f"{link.bytes_per_s / 1e6:,.1f} MB/s" if math.isfinite(link.bytes_per_s) else UNKNOWN,
                f"{link.latency_s * 1e3:.2f} ms" if math.isfinite(link.latency_s) else UNKNOWN,
                f"{link.loss * 100:.2f} %" if math.isfinite(link.loss) else UNKNOWN,
            )
            for link in series.links
        ),
        names=3,
    )


def processes_table(series: Series) -> Table:
    """What ran on each rank."""
    measured = [each.device for each in series.devices]
    return Table(
        title="Ranks and versions",
        columns=("rank", "host", "device", "Tandem", "Python", "PyTorch"),
        rows=tuple(
            (
                str(rank),
                each.host,
                measured[row] if len(measured) == len(series.processes) else _started_device(series),
                each.tandem,
                each.python,
                each.torch or UNKNOWN,
            )
            for row, (rank, each) in enumerate(zip(process_ranks(series), series.processes, strict=True))
        )[:MOST_ROWS],
        names=6,
    )


def _started_device(series: Series) -> str:
    return (series.started.device if series.started is not None else "") or UNKNOWN
