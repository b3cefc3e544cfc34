"""What differs between runs: recipe, data, environment, hosts; what is the same is only counted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite

import numpy as np

from tandem.artefact import fingerprint
from tandem.observe.delivered import LOOPBACK, delivered_by
from tandem.observe.numbers import count, decimal, link_rate
from tandem.observe.report.particulars import flat_rows
from tandem.observe.series.columns import HostSamples, Series
from tandem.runlog.card import DataCard

__all__ = ["UNKNOWN", "Difference", "Differences", "differences", "surroundings"]

UNKNOWN = "–"
MARK = 12
"""Characters of a fingerprint that are shown."""
OF_COMPUTING = ("ranks", "GPUs")
"""What of the hosts changes how numbers are rounded."""
UNTOLD = "name"
"""The key of a recipe that always differs and changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that is not the same everywhere."""

    key: str
    values: tuple[str, ...]
    """In the order of the runs; a dash where a run does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """What differs in one respect."""

    title: str
    rows: tuple[Difference, ...]
    same: int
    """How many things are alike."""
    untold: tuple[str, ...]
    """Runs of which nothing is known in this respect."""


def differences(named: Mapping[str, Series]) -> tuple[Differences, ...]:
    """All respects, in the order of a run's life."""
    return tuple(_differences(title, named, facts) for title, facts in _RESPECTS)


def surroundings(named: Mapping[str, Series]) -> tuple[str, ...]:
    """What differs although it is no part of a recipe: the keys of data and environment, and the ranks."""
    data, environment, hosts = differences(named)[1:]
    keys = [row.key for respect in (data, environment) for row in respect.rows]
    return (*keys, *(row.key for row in hosts.rows if row.key in OF_COMPUTING))


def _differences(
    title: str, named: Mapping[str, Series], facts: Callable[[Series], Mapping[str, str]]
) -> Differences:
    found = {name: facts(series) for name, series in named.items()}
    told = {name: held for name, held in found.items() if held}
    keys = dict.fromkeys(key for held in told.values() for key in held)
    differing = [key for key in keys if len({held.get(key, UNKNOWN) for held in told.values()}) > 1]
    return Differences(
        title=title,
        rows=tuple(
            Difference(key=key, values=tuple(held.get(key, UNKNOWN) for held in found.values()))
            for key in differing
        ),
        same=len(keys) - len(differing) if len(told) > 1 else 0,
        untold=tuple(name for name in named if name not in told),
    )


def _recipe(series: Series) -> Mapping[str, str]:
    return {key: value for key, value in flat_rows(series.recipe) if key != UNTOLD}


def _data(series: Series) -> Mapping[str, str]:
    card = series.card
    return {} if card is None else _card_facts(card)


def _card_facts(card: DataCard) -> dict[str, str]:
    facts = {"languages": f"{card.languages.source} → {card.languages.target}"}
    for corpus in card.corpora:
        sums = [each.sha256 for each in corpus.files]
        facts |= {
            f"{corpus.name}: lines": count(corpus.lines),
            f"{corpus.name}: lines kept": count(corpus.kept),
            f"{corpus.name}: weight": f"{corpus.weight:g}",
            f"{corpus.name}: fingerprint of its files": fingerprint(sums)[:MARK] if sums else UNKNOWN,
        }
    facts |= {
        "training pairs": count(card.stored.pairs),
        "source tokens": count(card.tokens.source),
        "target tokens": count(card.tokens.target),
        "vocabulary": f"{card.vocabulary.kind}, {count(card.vocabulary.size)} pieces",
    }
    for held in card.held_out:
        facts |= {
            f"{held.name}: pairs": count(held.pairs),
            f"{held.name}: words": f"{count(held.words.source)} → {count(held.words.target)}",
            f"{held.name}: tokens": f"{count(held.tokens.source)} → {count(held.tokens.target)}",
            f"{held.name}: pairs removed from training": count(held.overlap_removed),
        }
    return facts


def _environment(series: Series) -> Mapping[str, str]:
    versions = {
        "Tandem": [each.tandem for each in series.processes],
        "Python": [each.python for each in series.processes],
        "PyTorch": [each.torch for each in series.processes],
    }
    facts = {name: _joined(found) for name, found in versions.items() if any(found)}
    if (started := series.started) is not None:
        facts |= {
            "device": started.device or UNKNOWN,
            "precision": started.precision or UNKNOWN,
            "way of computing": started.way,
            "parameters": count(started.parameters) if started.parameters else UNKNOWN,
            "target tokens an update, as planned": count(started.target_tokens_per_update),
            "layout of batches": started.layout or UNKNOWN,
        }
    if len(series.steps) and series.steps.target_tokens.any():
        facts["target tokens a step, mean"] = count(round(float(series.steps.target_tokens.mean())))
    if series.imported is not None:
        facts["imported from"] = series.imported.tool
    return facts


def _hosts(series: Series) -> Mapping[str, str]:
    hosts = [each.host for each in series.processes if each.host]
    facts = {"hosts": _joined(hosts)} if hosts else {}
    if series.started is not None and series.started.ranks:
        facts["ranks"] = count(series.started.ranks)
    if series.samples:
        facts |= _machines(series.samples)
    speeds = [each.flops_per_s for each in series.devices if isfinite(each.flops_per_s)]
    if speeds:
        facts["measured speed of a device"] = f"{np.median(speeds) / 1e12:.3g} TFLOP/s"
    links = [each.bytes_per_s for each in series.links if isfinite(each.bytes_per_s)]
    if links:
        facts["slowest link, as measured"] = link_rate(min(links))
    elif (highest := _highest(series)) > 0:
        facts["highest rate seen on an interface"] = link_rate(highest)
    delays = [each.latency_s for each in series.links if isfinite(each.latency_s)]
    if delays:
        facts["longest way there and back"] = f"{max(delays) * 1e3:.2f} ms"
    return facts


def _highest(series: Series) -> float:
    """Bytes a second; the links between hosts may deliver more."""
    seen = (
        delivered_by(series, host, row)
        for host, samples in series.samples.items()
        for row, name in enumerate(samples.described.interfaces)
        if name != LOOPBACK
    )
    return max((rate.bytes_per_s for rate in seen if rate is not None), default=0.0)


def _machines(samples: Mapping[str, HostSamples]) -> dict[str, str]:
    described = [each.described for each in samples.values()]
    gpus = [name for each in described for name in each.gpus]
    facts = {
        "GPUs": ", ".join(f"{gpus.count(name)} × {name}" for name in dict.fromkeys(gpus)) or "none",
        "cores of a host": _joined([count(each.cores) for each in described if each.cores > 0]),
        "memory of a host": _joined(
            [f"{decimal(each.memory_bytes / 1e9)} GB" for each in described if each.memory_bytes > 0]
        ),
    }
    speeds = [bits for each in described for bits in each.interface_bits_per_s if bits > 0]
    if speeds:
        facts["fastest interface, nominal"] = link_rate(max(speeds) / 8)
    return facts


def _joined(found: list[str]) -> str:
    return ", ".join(dict.fromkeys(each for each in found if each)) or UNKNOWN


_RESPECTS: tuple[tuple[str, Callable[[Series], Mapping[str, str]]], ...] = (
    ("Recipe", _recipe),
    ("Data", _data),
    ("Environment", _environment),
    ("Hosts", _hosts),
)
