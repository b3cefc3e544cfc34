"""`tandem score`: BLEU, chrF and TER of translations, and whether one system is better than another."""

# Imports wait until a command runs, so that --help answers at once.

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tandem.errors import TandemError

if TYPE_CHECKING:
    from tandem.translate.compare import Compared
    from tandem.translate.measure import Measured, Metric, Rules

__all__ = ["score"]

NAMES = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER"}


def score(
    hypotheses: Annotated[Path, typer.Argument(help="Translations, one a line; - is standard input.")],
    *,
    ref: Annotated[list[Path] | None, typer.Option(help="References, line by line; may be repeated.")] = None,
    src: Annotated[Path | None, typer.Option(help="What was translated; for --comet.")] = None,
    metric: Annotated[str, typer.Option(help="Of bleu, chrf and ter, with commas.")] = "bleu,chrf",
    tokenize: Annotated[str, typer.Option(help="How sacreBLEU splits words for BLEU.")] = "13a",
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Compare without regard to case.")] = False,
    test_set: Annotated[
        str, typer.Option(help="References of a standard test set, as wmt14, in place of --ref.")
    ] = "",
    language_pair: Annotated[str, typer.Option(help="Languages of the test set, as en-de.")] = "",
    against: Annotated[
        Path | None, typer.Option(help="Translations of another system: are these better?")
    ] = None,
    comet: Annotated[str, typer.Option(help="Also score with this COMET model: a file or a name.")] = "",
    trust_comet: Annotated[
        bool,
        typer.Option(
            "--trust-comet", help="Read a COMET model that holds Python objects: it can run any code."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Score translations against references, with 95 % intervals and sacreBLEU's signatures."""
    from tandem.cli.bars import Bars
    from tandem.translate.measure import Rules, measure

    rules = Rules(tokenize=tokenize, lowercase=lowercase)
    lines = _read(hypotheses)
    sources, references = _find_references(ref or [], src, test_set, language_pair)
    metrics = _find_metrics(metric)
    with Bars() as progress:
        found = measure(lines, references, metrics=metrics, rules=rules, progress=progress)
    compared = [] if against is None else _compare(lines, _read(against), references, metrics, rules=rules)
    learnt = _comet(comet, sources, lines, references, is_trusted=trust_comet) if comet else None
    if as_json:
        _print_json(len(lines), found, compared, comet=learnt)
    else:
        _print(found, compared, comet=learnt, names=(str(hypotheses), str(against)))


def _find_metrics(asked: str) -> "list[Metric]":
    from tandem.translate.measure import METRICS

    wanted = [name.strip() for name in asked.split(",")]
    for name in wanted:
        if name not in METRICS:
            raise TandemError(f"There is no metric {name!r}: take some of {', '.join(METRICS)}, with commas.")
    return [metric for metric in METRICS if metric in wanted]


def _find_references(
    ref: Sequence[Path], src: Path | None, test_set: str, pair: str
) -> tuple[Sequence[str] | None, Sequence[Sequence[str]]]:
    from tandem.translate.testset import read_test_set

    if bool(ref) == bool(test_set):
        raise TandemError(
            "Say what to compare with: either --ref FILE, or --test-set NAME --language-pair en-de."
        )
    if bool(test_set) != bool(pair):
        raise TandemError("A test set has many languages: give --test-set and --language-pair together.")
    sources = None if src is None else _read(src)
    if not test_set:
        return sources, [_read(path) for path in ref]
    held = read_test_set(test_set, pair)
    return sources or held.source, held.references


def _read(path: Path) -> list[str]:
    """The lines of a file; bytes first, since only a newline parts lines."""
    data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TandemError(f"Line {line:,} of {path} is not UTF-8: convert it first.") from None
    return [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def _compare(
    lines: Sequence[str],
    others: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: "Sequence[Metric]",
    *,
    rules: "Rules",
) -> "list[Compared]":
    from tandem.translate.compare import compare

    return [compare(lines, others, references, metric=metric, rules=rules) for metric in metrics]


def _comet(
    model: str,
    sources: Sequence[str] | None,
    lines: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    is_trusted: bool,
) -> float:
    from tandem.translate.comet import comet_score

    if sources is None:
        raise TandemError("COMET reads what was translated too: give it with --src.")
    return comet_score(model, sources, lines, references[0], is_trusted=is_trusted)


def _print(
    found: "Sequence[Measured]",
    compared: "Sequence[Compared]",
    *,
    comet: float | None,
    names: tuple[str, str],
) -> None:
    for each in found:
        typer.echo(f"{NAMES[each.metric]:<4} {each.score:6.2f}  ({_interval(each)})  {each.signature}")
    if comet is not None:
        typer.echo(f"COMET {comet:.4f}")
    for pair in compared:
        typer.echo(_sentence(pair, *names))


def _interval(each: "Measured") -> str:
    if each.low is None or each.high is None:
        return "too few sentences for an interval"
    return f"{each.low:.2f} to {each.high:.2f}"


def _sentence(pair: "Compared", first: str, second: str) -> str:
    name = NAMES[pair.metric]
    figures = f"{name} {pair.first:.2f} and {pair.second:.2f}"
    if pair.chance is None:
        return f"{first} and {second}: too few sentences to tell which is better by {name} ({figures})."
    figures += f", p = {pair.chance:.3f}"
    if not pair.is_told_apart:
        return f"{first} and {second} are not told apart by {name}: chance makes such a difference too ({figures})."
    better, worse = (first, second) if pair.is_better else (second, first)
    return f"{better} is better than {worse} by {name}: chance seldom makes such a difference ({figures})."


def _print_json(
    sentences: int, found: "Sequence[Measured]", compared: "Sequence[Compared]", *, comet: float | None
) -> None:
    import json

    held: dict[str, object] = {"sentences": sentences, "scores": [asdict(each) for each in found]}
    if comet is not None:
        held["comet"] = comet
    if compared:
        held["compared"] = [
            {
                **asdict(pair),
                "told_apart": None if pair.chance is None else pair.is_told_apart,
                "better": pair.is_better,
            }
            for pair in compared
        ]
    typer.echo(json.dumps(held, indent=2))
