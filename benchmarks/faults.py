"""Lets everything happen to runs over three hosts of a lab that can happen to hosts and links, several times each."""

import argparse
import json
import random
import shutil
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.faulting import FAULTS, Outcome, suffer, training, weights
from benchmarks.killing import write_recipe
from benchmarks.machine import command_line, describe_machine, machine_slug
from benchmarks.program import BENCH

from tandem.lab import Lab

_RESULTS = Path(__file__).parent / "results"
_STEPS = 400
_SAVED = 20

_DEFINITIONS = {
    "hosts": "three network namespaces of one machine with a link of 1 Gb/s each and no shared disk, one rank each; "
    "the command that watches over them runs outside of them",
    "at_step": "random, between 40 and 100 of 400; a checkpoint every 20 steps",
    "comes back, mended, wakes up": "after the run has noticed; it waits for all three (--min-hosts 3)",
    "for good": "the run goes on with the other two (--min-hosts 2)",
    "goes_on_s": "seconds from the fault to the first step after it; where no start was needed, the longest time "
    "without a step",
    "steps_lost": "steps that were made twice",
    "is_identical": "whether model.safetensors and optimizer.safetensors of the last step are the same bytes as in "
    "a run that was left alone; expected where the number of ranks was three in all steps",
}


def main() -> None:
    options = _read_options()
    folder = BENCH / "faults"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    machine = describe_machine({})
    write_recipe(folder, steps=_STEPS, saved=_SAVED)
    moments = random.Random(options.seed)  # noqa: S311
    outcomes: list[Outcome] = []
    with Lab.up(folder / "lab", hosts=3, rate="1gbit") as lab:
        with training(lab, folder, "alone", ()) as run:
            if run.end():
                sys.exit(run.output.read_text())
        alone = weights(lab, "alone")
        for fault in FAULTS:
            for trial in range(options.trials):
                name = f"{fault.name}-{trial}".replace(" ", "-").replace(",", "")
                step = moments.randrange(40, 100)
                outcomes.append(suffer(fault, lab, folder, run=name, at_step=step, alone=alone, hosts=3))
                print(outcomes[-1], flush=True)
    result = {
        "date": datetime.now(UTC).date().isoformat(),
        "command": command_line(),
        "machine": machine,
        "definitions": _DEFINITIONS,
        "seed": options.seed,
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }
    path = options.out / f"{result['date']}-faults-{machine_slug()}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    _show(outcomes)
    wrong = [
        each
        for each in outcomes
        for fault in FAULTS
        if fault.name == each.fault
        and (
            each.exit_code != 0
            or each.last_step != _STEPS
            or each.is_identical < fault.keeps_ranks
            or (each.starts > 1) > fault.is_loss
            or each.steps_lost > 2 * _SAVED
        )
    ]
    if wrong:
        sys.exit(f"not as expected: {wrong}")


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    return parser.parse_args()


def _show(outcomes: list[Outcome]) -> None:
    table = Table("fault", "trials", "recovered", "seconds until it goes on", "steps lost", "same weights")
    for fault in FAULTS:
        ours = [each for each in outcomes if each.fault == fault.name]
        seconds = sorted(each.goes_on_s for each in ours)
        lost = sorted(each.steps_lost for each in ours)
        table.add_row(
            fault.name,
            str(len(ours)),
            str(sum(each.exit_code == 0 and each.last_step == _STEPS for each in ours)),
            f"{median(seconds):.1f} ({seconds[0]:.1f} to {seconds[-1]:.1f})",
            f"{lost[0]} to {lost[-1]}",
            str(sum(each.is_identical for each in ours)) if fault.keeps_ranks else "fewer ranks",
        )
    Console(highlight=False, width=120).print(table)


if __name__ == "__main__":
    main()
