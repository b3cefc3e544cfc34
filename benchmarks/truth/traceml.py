"""Lets TraceML and Tandem watch the same runs, with faults that are really injected, and sets down what each said.

TraceML (`traceml-ai` of the package registry, its newest version) is installed into a folder of its own, never beside
Tandem. It runs as its documentation has it for a loop of one's own that is started by another launcher: `traceml serve`
gathers, each rank calls `traceml.init()` and marks its steps (`weak/traceml_marks.py`), and its verdict is that of its
`final_summary.json`.
"""

import argparse
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.truth.injected import train_injected
from benchmarks.truth.injected_cases import CASES, Case
from benchmarks.truth.real import WEAK
from benchmarks.truth.table import write_table

from tandem.lab import Lab
from tandem.observe.series.fold import read_series
from tandem.observe.verdicts import judge_run

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "verdicts.md"
_MARKERS = (
    "<!-- TraceML table: made by benchmarks/truth/traceml.py -->",
    "<!-- end of the TraceML table -->",
)
_PACKAGE = "traceml-ai"
_INSIDE = "TANDEM_TRACEML_VENV"
_PORT = 29765
_ENDING_S = 120.0
_NAMES = (
    "healthy-lab",
    "healthy-alone",
    "link-50mbit",
    "link-200mbit",
    "link-delay-30ms",
    "link-loss-3-percent",
    "link-down-for-3s",
    "half-duplex-60mbit",
    "stop-rank1-3s-of-12",
    "stop-both-2s-of-8",
    "slow-core-third",
    "shared-core-alone",
    "reader-far",
    "reader-far-for-rank1",
    "reader-stalls",
    "slow-disk",
)
_DONE: Mapping[str, str] = {
    "none": "nothing",
    "network": "the link between the hosts",
    "rank": "a rank's processor",
    "ranks": "the processor of both",
    "data": "the reader of data",
    "disk": "the disk of checkpoints",
}


def main() -> None:
    """Train what is not there, watched by both, and write the table."""
    options = _read_options()
    if _INSIDE not in os.environ:
        _enter(options.venv)
    names = options.only or _NAMES
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for case in (case for case in CASES if case.name in names):
            # Tandem rehearses steps without exchange now and then, which another tool takes for computing: seldom.
            words = tuple(
                "telemetry.probe_steps=40" if "probe_steps" in word else word for word in case.words
            )
            watched = replace(case, words=words)
            folder = train_injected(watched, options.keep or Path(scratch), watch=partial(_watch, case.name))
            rows.append(_row(case, folder))
            sys.stdout.write(rows[-1] + "\n")
            sys.stdout.flush()
    if not options.only:
        write_table(_PAGE, _table(rows), markers=_MARKERS)


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--venv", type=Path, required=True, help="a folder for TraceML; made if it is not there"
    )
    parser.add_argument("--keep", type=Path, help="keep run folders here, and train none again that is here")
    parser.add_argument("--only", nargs="*", help="only these runs; writes no table")
    return parser.parse_args()


def _enter(folder: Path) -> None:
    """Go on in a Python that has TraceML, and all that this one has."""
    python = folder / "bin" / "python"
    if not (folder / "bin" / "traceml").exists():
        venv.create(folder, with_pip=True)
        (site,) = folder.glob("lib/python*/site-packages")
        (site / "tandem.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--upgrade", _PACKAGE], check=True)
    environment = {**os.environ, _INSIDE: str(folder)}
    sys.exit(subprocess.run([python, *sys.argv], env=environment, check=False).returncode)


@contextmanager
def _watch(name: str, folder: Path, lab: Lab | None) -> Iterator[Mapping[str, str]]:
    """TraceML gathers while the block lasts; what ranks need in their environment to tell it."""
    address = "127.0.0.1" if lab is None else lab.address("h1")
    words = ["serve", "--run-name", name, "--logs-dir", str(folder / "traceml"), "--aggregator-host", address]
    words += ["--aggregator-bind-host", "0.0.0.0" if lab else address, "--aggregator-port", str(_PORT)]  # noqa: S104
    words += ["--nnodes", "2" if lab else "1", "--nproc-per-node", "1" if lab else "2"]
    command = [str(Path(sys.executable).with_name("traceml")), *words]
    with (folder / "traceml.txt").open("w") as output:
        streams: dict[str, Any] = {"stdout": output, "stderr": subprocess.STDOUT}
        if lab is None:
            process = subprocess.Popen(command, text=True, **streams)
        else:
            process = lab.start("h1", command, **streams)
        try:
            yield {
                "PYTHONPATH": str(WEAK),
                "TRACEML_SESSION_ID": name,
                "TRACEML_AGGREGATOR_HOST": address,
                "TRACEML_AGGREGATOR_PORT": str(_PORT),
                "TRACEML_LOGS_DIR": str(folder / "traceml"),
            }
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(_ENDING_S)
            finally:
                process.kill()


def _row(case: Case, folder: Path) -> str:
    truth = json.loads((folder / "truth.json").read_text())
    taken = truth["taken"]
    share = f"{taken['low']:.0%} to {taken['high']:.0%}".replace("%", " %") if taken else "nothing"
    cells = [case.name, _DONE[case.kind], share, _of_traceml(folder), _of_tandem(folder / "runs" / case.name)]
    return f"| {' | '.join(cells)} |"


def _of_traceml(folder: Path) -> str:
    """Its primary diagnosis in its own words, and its diagnoses of step time."""
    found = next(iter((folder / "traceml").rglob("final_summary.json")), None)
    if found is None:
        return "no summary"
    summary = json.loads(found.read_text())
    primary = summary.get("primary_diagnosis") or {}
    said = primary.get("status") or primary.get("kind") or "none"
    why = primary.get("summary") or primary.get("reason") or ""
    # A finding of another section is no diagnosis of the run, and a symptom that can be read beside it.
    issues = [
        issue for part in ("step_time", "system", "process") for issue in summary[part].get("issues", ())
    ]
    others = {
        issue["status"]: issue["severity"]
        for issue in issues
        if issue["status"] != said and issue["severity"] != "info"
    }
    more = ", ".join(f"{status} ({severity})" for status, severity in others.items())
    return _plain(f"{said} ({primary.get('severity')}): {why}{f'<br>also: {more}' if more else ''}")


def _of_tandem(run: Path) -> str:
    findings = {finding.key: finding for finding in judge_run(read_series(run))}
    said = [
        f"{name}: {findings[key].verdict} ({findings[key].confidence}): {findings[key].answer}"
        for key, name in (("network", "network"), ("gpus", "GPUs"))
    ]
    return _plain("<br>".join(said))


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("|", "/")


def _table(rows: Sequence[str]) -> str:
    version = importlib.metadata.version(_PACKAGE)
    intro = (
        f"The same {len(rows)} runs of two ranks, watched by TraceML {version} and by Tandem. What the fault took is "
        "the share of all steps' time, against the steps of the same run before it."
    )
    lines = [
        intro,
        "",
        "| run | what was weakened | took | TraceML's primary diagnosis | Tandem's answers |",
        "|---|---|---|---|---|",
        *rows,
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
