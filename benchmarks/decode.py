"""Measures translation: Tandem's engines beside Hugging Face's and CTranslate2's own, same model and sentences."""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from tandem.checkpoint.bundle import Bundle, find_bundle, open_bundle
from tandem.checkpoint.marian import fits
from tandem.cli.bars import Bars
from tandem.data.corpus.builtin import builtin_pairs
from tandem.export.ctranslate2 import export_ctranslate2
from tandem.export.huggingface import write_huggingface
from tandem.export.huggingface_engine import quiet
from tandem.progress import Progress
from tandem.translate.ctranslate2_engine import load_ctranslate2, read_vocabularies
from tandem.translate.exported import Exported, open_ctranslate2
from tandem.translate.open import build_translator, wrap_engine
from tandem.translate.penalty import LengthPenalty
from tandem.translate.translator import Translator, most_target_pieces
from tandem.translate.wish import Wish

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.gpu.anatomy import take_apart
from benchmarks.machine import command_line, describe_machine, machine_slug

_RESULTS = Path(__file__).parent / "results"
_WARM_UP = 64
_BATCH_TOKENS = {"cpu": 1_024, "cuda": 8_192}

_DEFINITIONS = {
    "target_tokens_per_s": "pieces of the translations, an end mark each, / seconds from lines of text to lines of "
    "text, one figure a repetition; loading and a warm-up on some sentences are left out",
    "same": "share of lines with the same translation as Tandem's own engine",
    "ratios": "target_tokens_per_s of Tandem's side over the other's in the same repetition, the median of all",
    "anatomy": "milliseconds that the GPU was busy in one translation of all lines by Tandem, by what for",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Lines of translation, and the pieces in them with an end mark each."""

    lines: list[str]
    tokens: int


@dataclass(slots=True, kw_only=True)
class Side:
    """One way to translate, and what was measured of it."""

    name: str
    does: str
    translate: Callable[[Sequence[str]], Said]
    seconds: list[float] = field(default_factory=list)
    said: Said | None = None

    def measure(self, lines: Sequence[str]) -> None:
        """Translate once, against the clock."""
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        begun = time.perf_counter()
        self.said = self.translate(lines)
        self.seconds.append(time.perf_counter() - begun)

    @property
    def target_tokens_per_s(self) -> list[float]:
        """Return one figure a repetition."""
        return [(self.said.tokens if self.said else 0) / seconds for seconds in self.seconds]

    def to_json(self, ours: Said) -> dict[str, object]:
        """Return the side as it stands in a result file."""
        said = self.said or Said(lines=[], tokens=0)
        same = sum(one == other for one, other in zip(said.lines, ours.lines, strict=True)) / len(ours.lines)
        return {
            "side": self.name,
            "does": self.does,
            "target_tokens": said.tokens,
            "target_tokens_per_s": [round(speed, 1) for speed in self.target_tokens_per_s],
            "same": round(same, 4),
        }


def main() -> None:
    """Export, measure, write the result file and print the table."""
    options = _options()
    lines = _read_lines(options)
    folder = find_bundle(options.model)
    peers = ("transformers", "ctranslate2") if options.device == "cpu" else ("transformers",)
    machine = describe_machine({name: version(name) for name in peers})
    with tempfile.TemporaryDirectory() as scratch, Bars() as progress:
        sides = list(_sides(folder, Path(scratch), options, progress))
        _measure(sides, lines, options.repetitions, progress)
        anatomy = _anatomy(sides[0], lines) if options.device == "cuda" else None
    assert sides[0].said is not None
    ratios = _ratios(sides)
    _print_table(sides, ratios)
    if anatomy is not None:
        print(json.dumps(anatomy["by_class_ms"]), f"{anatomy['launches']} kernels")
    result = {
        "benchmark": "decode",
        "date": datetime.now(UTC).date().isoformat(),
        "command": command_line(),
        "machine": machine,
        "device": torch.cuda.get_device_name() if options.device == "cuda" else "cpu",
        "precision": options.precision,
        "model": open_bundle(folder).recipe.model.model_dump(),
        "sentences": len(lines),
        "beam": options.beam,
        "batch_tokens": options.batch_tokens,
        "definitions": _DEFINITIONS,
        "sides": [side.to_json(sides[0].said) for side in sides],
        "ratios": ratios,
        "anatomy": anatomy,
    }
    name = f"{result['date']}-decode-{machine_slug(options.device)}.json"
    place: Path = options.out / name
    place.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written to {place}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "model", type=Path, help="run or checkpoint; best one that Hugging Face can represent"
    )
    parser.add_argument("--source", type=Path, help="file of source sentences; built-in English if not given")
    parser.add_argument("--sentences", type=int, default=1_000)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--quantization", choices=["float32", "int8"], default="int8", help="of CTranslate2")
    parser.add_argument(
        "--batch-tokens", type=int, help="source tokens of a batch; ours for the device if not given"
    )
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder for the result file")
    options = parser.parse_args()
    options.batch_tokens = options.batch_tokens or _BATCH_TOKENS[options.device]
    return options


def _read_lines(options: argparse.Namespace) -> list[str]:
    if options.source is None:
        return [source for source, _ in builtin_pairs(seed=7, split="test", count=options.sentences)]
    lines: list[str] = options.source.read_text(encoding="utf-8").splitlines()[: options.sentences]
    return lines


def _sides(folder: Path, scratch: Path, options: argparse.Namespace, progress: Progress) -> Iterator[Side]:
    bundle = open_bundle(folder)
    device = torch.device(options.device)
    own = build_translator(
        bundle, folder, device=device, precision=options.precision, batch_tokens=options.batch_tokens
    )
    # Hugging Face and CTranslate2 know no other penalty than a power of the length.
    alpha = bundle.recipe.evaluate.length_penalty
    wish = replace(own.wish, beam=options.beam, penalty=LengthPenalty(alpha=alpha, kind="power"))
    yield Side(name="Tandem, torch", does="tandem translate --engine torch", translate=_ours(own, wish))
    if options.device == "cpu":
        export_ctranslate2(folder, scratch / "ct2", quantization=options.quantization, progress=progress)
        exported = open_ctranslate2(scratch / "ct2")
        translator = wrap_engine(exported.engine, exported.subword, exported.recipe)
        does = f"tandem translate --engine ctranslate2, {options.quantization}"
        yield Side(name="Tandem, CTranslate2", does=does, translate=_ours(translator, wish))
        does = "Translator.translate_batch on the same export, defaults of its own but for beam and penalty"
        translate = _ctranslate2(scratch / "ct2", exported, wish, intra_threads=0)
        yield Side(name="CTranslate2", does=does, translate=translate)
        workers = len(os.sched_getaffinity(0))
        translate = _ctranslate2(scratch / "ct2", exported, wish, inter_threads=workers, intra_threads=1)
        yield Side(
            name="CTranslate2, a worker a core",
            does=f"{does}, inter_threads={workers}, intra_threads=1",
            translate=translate,
        )
    if not fits(bundle.recipe.model):
        progress.say("Without Hugging Face: none of its own classes computes this model.")
        return
    (scratch / "hf").mkdir()
    write_huggingface(bundle, scratch / "hf")
    does = "generate on the exported weights, batches of like length, as many tokens as ours"
    yield Side(name="Hugging Face", does=does, translate=_hugging_face(scratch / "hf", bundle, wish, options))


def _ours(translator: Translator, wish: Wish) -> Callable[[Sequence[str]], Said]:
    def translate(lines: Sequence[str]) -> Said:
        found = translator.translate(lines, wish)
        return Said(lines=[each.text for each in found], tokens=sum(each.pieces + 1 for each in found))

    return translate


def _ctranslate2(
    folder: Path, exported: Exported, wish: Wish, **threads: int
) -> Callable[[Sequence[str]], Said]:
    translator = load_ctranslate2().Translator(str(folder), device="cpu", **threads)
    source, target = read_vocabularies(folder)
    ids = {token: number for number, token in enumerate(target)}

    def translate(lines: Sequence[str]) -> Said:
        encoded = exported.subword.source.encode(lines)
        rows = np.split(encoded.ids, np.cumsum(encoded.lengths)[:-1])
        results = translator.translate_batch(
            [[source[piece] for piece in row.tolist()] for row in rows],
            beam_size=wish.beam,
            length_penalty=wish.penalty.alpha,
            max_batch_size=_BATCH_TOKENS["cpu"],
            batch_type="tokens",
        )
        said = [[ids[token] for token in result.hypotheses[0]] for result in results]
        texts = [exported.subword.target.decode(row) for row in said]
        return Said(lines=texts, tokens=sum(len(row) + 1 for row in said))

    return translate


def _hugging_face(
    folder: Path, bundle: Bundle, wish: Wish, options: argparse.Namespace
) -> Callable[[Sequence[str]], Said]:
    from transformers import AutoModelForSeq2SeqLM  # noqa: PLC0415  (an extra)

    with quiet():
        model: Any = AutoModelForSeq2SeqLM.from_pretrained(str(folder), local_files_only=True)
    model = model.to(options.device, getattr(torch, options.precision)).eval()
    special = bundle.subword.target.special

    def translate_batch(rows: list[list[int]]) -> list[list[int]]:
        ids = torch.nn.utils.rnn.pad_sequence(
            [torch.tensor([*row, special.eos]) for row in rows], batch_first=True, padding_value=special.pad
        )
        lengths = torch.tensor([len(row) + 1 for row in rows])
        mask = torch.arange(ids.shape[1]) < lengths[:, None]
        with torch.inference_mode():
            made = model.generate(
                input_ids=ids.to(options.device),
                attention_mask=mask.long().to(options.device),
                num_beams=wish.beam,
                length_penalty=wish.penalty.alpha,
                early_stopping=False,
                max_length=None,
                max_new_tokens=most_target_pieces(max(map(len, rows))) + 1,
            )
        marks = {special.bos, special.eos, special.pad}
        return [[piece for piece in row if piece not in marks] for row in made.tolist()]

    def translate(lines: Sequence[str]) -> Said:
        encoded = bundle.subword.source.encode(lines)
        rows = [row.tolist() for row in np.split(encoded.ids, np.cumsum(encoded.lengths)[:-1])]
        said: dict[int, list[int]] = {}
        for numbers in _batches(rows, options.batch_tokens):
            said.update(zip(numbers, translate_batch([rows[number] for number in numbers]), strict=True))
        texts = [bundle.subword.target.decode(said[number]) for number in range(len(rows))]
        return Said(lines=texts, tokens=sum(len(row) + 1 for row in said.values()))

    return translate


def _batches(rows: Sequence[Sequence[int]], tokens: int) -> Iterator[list[int]]:
    order = sorted(range(len(rows)), key=lambda number: -len(rows[number]))
    while order:
        size = max(1, tokens // (len(rows[order[0]]) + 1))
        yield order[:size]
        order = order[size:]


def _measure(sides: Sequence[Side], lines: Sequence[str], repetitions: int, progress: Progress) -> None:
    """Take turns, so that what slows this machine down for a while slows all sides."""
    with progress.bar("translating", total=repetitions * len(sides), unit="runs") as bar, quiet():
        for side in sides:
            side.translate(lines[:_WARM_UP])
        for _ in range(repetitions):
            for side in sides:
                side.measure(lines)
                bar.advance(1)


def _anatomy(side: Side, lines: Sequence[str]) -> dict[str, Any]:
    return take_apart(lambda: side.translate(lines), steps=1, device=torch.device("cuda"))


def _ratios(sides: Sequence[Side]) -> dict[str, float]:
    """Return Tandem's side that a user gets over the others."""
    speeds = {side.name: side.target_tokens_per_s for side in sides}
    best = "Tandem, CTranslate2" if "Tandem, CTranslate2" in speeds else "Tandem, torch"
    return {
        f"{best} / {name}": round(_median_ratio(speeds[best], other), 2)
        for name, other in speeds.items()
        if name != best
    }


def _median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))


def _print_table(sides: Sequence[Side], ratios: dict[str, float]) -> None:
    table = Table("side", "target tokens/s", "same as ours")
    assert sides[0].said is not None
    for side in sides:
        told = side.to_json(sides[0].said)
        table.add_row(side.name, f"{statistics.median(side.target_tokens_per_s):,.0f}", f"{told['same']:.1%}")
    console = Console()
    console.print(table)
    for name, ratio in ratios.items():
        console.print(f"{name}: {ratio:.2f}")


if __name__ == "__main__":
    main()
