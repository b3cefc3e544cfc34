"""Multi30k English–German as published (41.02 BLEU on test2016, text only): trained from several seeds, and scored.

Everything goes through the command line: train, average the last ten checkpoints, translate, sacreBLEU on words. The
text is to lie in corpora/multi30k-bpe/. Hypotheses stay in the run folders; the result keeps their checksums.
"""

import argparse
import json
import lzma
import re
import statistics
import subprocess
import sys
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from tandem.checkpoint.listing import list_checkpoints
from tandem.data.subword.model import join_pieces
from tandem.runlog.event import StepFinished, TrainingFinished, TrainingStarted
from tandem.runlog.reader import read_records
from tandem.translate.score import score

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import describe_machine

ROOT = Path(__file__).resolve().parents[1]
RECIPE = ROOT / "recipes" / "multi30k-published.yaml"
TEXT = ROOT / "corpora" / "multi30k-bpe"
TANDEM = [sys.executable, "-m", "tandem"]
AVERAGED = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--runs", type=Path, default=ROOT / "runs")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("overrides", nargs="*", help="values of the recipe to change, for all seeds")
    words = parser.parse_args()
    subprocess.run([*TANDEM, "data", "prepare", RECIPE], check=True)
    runs = {seed: words.runs / f"multi30k-published-{seed}" for seed in words.seeds}
    # Side by side: one model of 4 million parameters leaves most of a GPU idle.
    trainings = [
        subprocess.Popen(
            [*TANDEM, "train", RECIPE, f"seed={seed}", *words.overrides, "--run", run, "--plain"]
        )
        for seed, run in runs.items()
    ]
    for training in trainings:
        if training.wait():
            raise SystemExit(f"a training ended with {training.returncode}")
    results = [describe_run(run) | {"seed": seed} for seed, run in runs.items()]
    write_result(words.out, results, words.overrides)


def describe_run(run: Path) -> dict[str, object]:
    facts = [record.event for record in read_records(run)]
    started = next(fact for fact in facts if isinstance(fact, TrainingStarted))
    finished = next(fact for fact in facts if isinstance(fact, TrainingFinished))
    steps = [fact for fact in facts if isinstance(fact, StepFinished)]
    seconds = sum(fact.duration_s for fact in steps)
    average = run / "average"
    subprocess.run(
        [*TANDEM, "average", run, average, "--count", str(AVERAGED)], check=True, stdout=subprocess.DEVNULL
    )
    newest = next(info for info in list_checkpoints(run / "checkpoints") if info.is_newest)
    return {
        "device": started.device,
        "precision": started.precision,
        "parameters": started.parameters,
        "steps": finished.step,
        "training_seconds": round(seconds, 1),
        "all_seconds": round(finished.duration_s, 1),
        "target_tokens_per_second": round(finished.tokens / seconds),
        "average": judge(average, run / "test2016.average.txt"),
        "last": judge(newest.folder, run / "test2016.last.txt"),
        "best_bleu_on_valid": judge(run, run / "test2016.best.txt"),
    }


def judge(model: Path, file: Path) -> dict[str, object]:
    """Translate the test set with a model, keep what it wrote, and score it."""
    source, target = (
        lzma.decompress((TEXT / f"test.2016.{side}.xz").read_bytes()).decode() for side in ("en", "de")
    )
    done = subprocess.run(
        [*TANDEM, "translate", model], input=source, capture_output=True, text=True, check=True
    )
    file.write_text(done.stdout)
    references = [join_pieces(line) for line in target.splitlines()]
    scores = score(done.stdout.splitlines(), references, tokenize="none")
    return {
        "bleu": round(scores.bleu, 2),
        "bleu_signature": scores.bleu_signature,
        "chrf": round(scores.chrf, 2),
        "chrf_signature": scores.chrf_signature,
        "hypotheses_sha256": sha256(done.stdout.encode()).hexdigest(),
    }


def write_result(folder: Path, results: list[dict[str, object]], overrides: list[str]) -> None:
    today = datetime.now(tz=UTC).date().isoformat()
    mean = {
        name: round(statistics.mean(result[name]["bleu"] for result in results), 2)  # type: ignore[index]
        for name in ("average", "last", "best_bleu_on_valid")
    }
    held = {
        "what": "Multi30k En-De, test2016, lower-case words, BLEU with --tokenize none; published: 41.02",
        "date": today,
        "machine": describe_machine({}),
        "recipe": RECIPE.name,
        "overrides": overrides,
        "mean_bleu": mean,
        "seeds": results,
    }
    device = re.sub("[^a-z0-9]+", "-", str(results[0]["device"]).lower())
    file = folder / f"{today}-multi30k-{device}.json"
    file.write_text(json.dumps(held, indent=1) + "\n")
    for result in results:
        print(result["seed"], result["steps"], result["training_seconds"], result["average"], result["last"])
    print("mean", mean, file)


if __name__ == "__main__":
    main()
