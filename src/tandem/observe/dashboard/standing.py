"""Where a run stands, as the page shows it: the whole of one, and a line of each."""

import math
import os
import platform
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tandem.artefact import JsonValue
from tandem.lock import beside, read_note
from tandem.observe.listing import Listed
from tandem.observe.numbers import count, duration
from tandem.observe.visible import visible
from tandem.observe.watch.hosts import WatchedHost
from tandem.observe.watch.progress import equipment_of, is_silent, numbers_of, progress_of, status
from tandem.observe.watch.state import Evaluation, WatchState
from tandem.runlog.layout import RunLayout

__all__ = ["Seen", "explain_failure", "listed_note", "state_note", "summary_note", "unread_note"]

NANO = 1_000_000_000
SHOWN_EVALUATIONS = 20
OVER = ("finished", "stopped", "failed", "imported")
GONE_S = 5.0
"""Without a word for so long: a run that writes is there, whatever its process number says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A run at a moment, and what is known of it beside its log."""

    key: str
    run: Path
    now_ns: int
    reading: float = 1.0
    """Share of the log that is read."""
    complaint: str = ""
    """What cannot be shown, and why; empty where nothing is wrong."""


def state_note(state: WatchState, seen: Seen) -> dict[str, JsonValue]:
    """All that is shown of a run beside its figures."""
    progress = progress_of(state)
    return {
        "now_ns": seen.now_ns,
        "run": visible(state.run or seen.run.name),
        "key": seen.key,
        **_doing(state, seen),
        "silent_s": _silence_s(state, seen),
        "equipment": equipment_of(state),
        "progress": None
        if progress is None
        else {"share": _number(progress.share), "text": progress.text, "left_s": _left_s(state, seen)},
        "numbers": [{"name": name, "value": value} for name, value in numbers_of(state).items()],
        "step": state.step,
        "last_time_ns": state.last_time_ns,
        "hosts": [_host(host) for host in state.hosts.values()],
        "evaluations": [_evaluation(each) for each in list(state.evaluations)[-SHOWN_EVALUATIONS:]],
        "samples": [
            {
                "step": each.step,
                "source": visible(each.source),
                "reference": visible(each.reference),
                "hypothesis": visible(each.hypothesis),
            }
            for each in state.samples
        ],
        "troubles": [*_troubles(state), *_own_troubles(seen)],
        "reading": round(seen.reading, 4),
    }


def unread_note(why: str, seen: Seen) -> dict[str, JsonValue]:
    """What is shown of a run whose log holds nothing yet, or cannot be read."""
    state = WatchState(run=seen.run.name)
    return {**state_note(state, seen), "status": visible(why), "doing": "unread", "troubles": []}


def summary_note(state: WatchState, seen: Seen) -> dict[str, JsonValue]:
    """A run in a list of runs."""
    progress = progress_of(state)
    best_loss, best_bleu = state.best("loss"), state.best("bleu")
    return {
        "key": seen.key,
        "name": visible(state.run or seen.run.name),
        **_doing(state, seen),
        "step": state.step,
        "share": None if progress is None else _number(progress.share),
        "text": f"step {count(state.step)}" if progress is None else progress.text,
        "left_s": _left_s(state, seen),
        "best_bleu": None if best_bleu is None else _number(best_bleu.bleu),
        "best_loss": None if best_loss is None else _number(best_loss.valid_loss),
        "last_time_ns": state.last_time_ns,
    }


def listed_note(listed: Listed, *, key: str) -> dict[str, JsonValue]:
    """The same, of a run that was read at the ends of its logs."""
    is_over = listed.state in OVER
    is_told = listed.state in {"finished", "stopped", "failed"} and listed.text
    return {
        "key": key,
        "name": visible(listed.folder.name),
        "status": visible(listed.trouble or (f"{listed.state}: {listed.text}" if is_told else listed.state)),
        "doing": "finished" if is_over else listed.state,
        "is_silent": listed.state in {"silent", "lost"},
        "is_closed": is_over,
        "ended": visible(listed.text) if is_over else "",
        "step": listed.step,
        "share": None if listed.share is None else _number(listed.share),
        "text": f"step {count(listed.step)}" if is_over else visible(listed.text),
        "left_s": None,
        "best_bleu": None if listed.best_bleu is None else _number(listed.best_bleu.value),
        "best_loss": None if listed.best_loss is None else _number(listed.best_loss.value),
        "last_time_ns": listed.last_time_ns,
    }


def explain_failure(error: Exception, run: Path) -> str:
    """One sentence on why a run's log cannot be read now."""
    if not RunLayout(run).log.is_dir():
        return f"the log is gone: {RunLayout(run).log} is not there any more, or its disk is not"
    what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"the log cannot be read: {what or type(error).__name__}"


def _doing(state: WatchState, seen: Seen) -> dict[str, JsonValue]:
    silent = is_silent(state, now_ns=seen.now_ns)
    told = status(state, now_ns=seen.now_ns)
    if not RunLayout(seen.run).log.is_dir():
        silent, told = True, explain_failure(FileNotFoundError(), seen.run)
    elif _is_gone(state, seen):
        silent = True
        told = f"gone for {duration(_silence_s(state, seen))}: its process ended without a word (was {state.doing})"
    return {
        "status": visible(told),
        "doing": state.doing,
        "is_silent": silent,
        "is_closed": state.is_closed,
        "ended": visible(state.ended),
    }


def _is_gone(state: WatchState, seen: Seen) -> bool:
    """Whether the process that holds the run's lock is dead, as far as this host can tell."""
    if state.doing == "finished" or state.is_closed or _silence_s(state, seen) < GONE_S:
        return False
    lock = beside(seen.run, "lock")
    pid = read_note(lock).get("pid") if lock.is_file() else None
    if (
        not isinstance(pid, int)
        or pid <= 0
        or RunLayout(seen.run).host_log(platform.node()) not in _logs(seen)
    ):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _logs(seen: Seen) -> Sequence[Path]:
    return list(RunLayout(seen.run).log.glob("host-*.jsonl"))


def _silence_s(state: WatchState, seen: Seen) -> float:
    if state.is_closed or not state.last_time_ns:
        return 0.0
    return round(max(0.0, (seen.now_ns - state.last_time_ns) / NANO), 1)


def _left_s(state: WatchState, seen: Seen) -> float | None:
    """Nothing is left of a run that ended, and nobody knows of one that says nothing."""
    progress = progress_of(state)
    if progress is None or progress.left_s is None or state.ended or is_silent(state, now_ns=seen.now_ns):
        return None
    return _number(progress.left_s)


def _evaluation(each: Evaluation) -> JsonValue:
    return {
        "step": each.step,
        "valid_loss": _number(each.valid_loss),
        "probe_loss": _number(each.probe_loss),
        "bleu": _number(each.bleu),
        "chrf": _number(each.chrf),
        "is_best_loss": each.is_best_loss,
        "is_best_bleu": each.is_best_bleu,
        "duration_s": _number(each.duration_s),
    }


def _host(host: WatchedHost) -> JsonValue:
    """The latest sample in short; shares from 0 to 1, and null where a value is not known."""
    described, last = host.described, host.last
    if last is None:
        return {"name": visible(host.name), "time_ns": None, "cpu": None, "gpus": [], "nics": []}
    return {
        "name": visible(host.name),
        "time_ns": last.time_ns,
        "cpu": _number(last.cpu),
        "memory": _part(last.memory_bytes, described.memory_bytes),
        "gpus": [
            {
                "name": visible(name),
                "utilisation": _number(last.gpu_utilisation[place]),
                "memory": _part(last.gpu_memory_bytes[place], _at(described.gpu_memory_bytes, place)),
                "power_w": _number(last.gpu_power_w[place]),
                "power_limit_w": _number(_at(described.gpu_power_limit_w, place)),
                "temperature_c": _number(last.gpu_temperature_c[place]),
                "is_throttled": last.gpu_throttled[place],
            }
            for place, name in enumerate(described.gpus)
        ],
        "nics": [
            {
                "name": visible(name),
                "received_bytes_per_s": _number(last.received_bytes_per_s[place]),
                "sent_bytes_per_s": _number(last.sent_bytes_per_s[place]),
                "bits_per_s": _at(described.interface_bits_per_s, place) or None,
            }
            for place, name in enumerate(described.interfaces)
        ],
    }


def _at(values: Sequence[float], place: int) -> float:
    return values[place] if place < len(values) else 0


def _part(used: float, whole: float) -> float | None:
    return _number(used / whole) if whole > 0 else None


def _troubles(state: WatchState) -> list[JsonValue]:
    return [{"time_ns": each.time_ns, "text": visible(str(each))} for each in state.troubles]


def _own_troubles(seen: Seen) -> list[JsonValue]:
    """What the log cannot tell of."""
    texts = [seen.complaint] if seen.complaint else []
    with suppress(OSError):
        disk = os.statvfs(RunLayout(seen.run).log)
        if disk.f_blocks and disk.f_bavail == 0:
            texts.append("the disk that holds the log is full: what the run does now may be missing from it")
    return [{"time_ns": seen.now_ns, "text": visible(text)} for text in texts]


def _number(value: float | None) -> float | None:
    """To six figures, which are more than a page shows; None where it is no number."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")
