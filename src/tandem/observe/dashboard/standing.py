"""Where a run stands, as the page shows it: the whole of one, and a line of each."""

import math
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tandem.artefact import JsonValue
from tandem.observe.delivered import speeds_text
from tandem.observe.listing import Listed
from tandem.observe.visible import visible
from tandem.observe.watch.hosts import WatchedHost
from tandem.observe.watch.life import Life, is_quiet, life_of, silence_s
from tandem.observe.watch.progress import (
    equipment_of,
    numbers_of,
    progress_of,
    share_text,
    status,
    way_of,
)
from tandem.observe.watch.state import Evaluation, WatchState
from tandem.runlog.layout import RunLayout

__all__ = ["Seen", "explain_failure", "listed_note", "state_note", "summary_note", "unread_note"]

NANO = 1_000_000_000
SHOWN_EVALUATIONS = 20
ENDED = ("finished", "stopped", "failed")
BEAT_S = 5.0
"""In which times that go by are told: a page need not be told of every second of a silence."""


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
    life = _life(state, seen)
    progress = progress_of(state, life=life)
    return {
        "now_ns": seen.now_ns,
        "run": visible(_name(seen.run)),
        "recipe": visible(state.recipe),
        "key": seen.key,
        **_doing(state, seen, life),
        "silent_s": 0.0 if state.is_closed else silence_s(state, now_ns=_beat_ns(state, seen)),
        "equipment": equipment_of(state),
        "progress": None
        if progress is None
        else {
            "share": _number(progress.share),
            "share_text": share_text(progress.share),
            "text": progress.text,
            "left_s": _number(progress.left_s),
        },
        "numbers": [{"name": name, "value": value} for name, value in numbers_of(state).items()],
        "step": state.step,
        "last_time_ns": state.last_time_ns,
        "is_over": life == "over",
        "hosts": [_host(host, state, seen, life) for host in state.hosts.values()],
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
    life = _life(state, seen)
    progress = progress_of(state, life=life)
    best_loss, best_bleu = state.best("loss"), state.best("bleu")
    return {
        "key": seen.key,
        "name": visible(_name(seen.run)),
        **_doing(state, seen, life),
        "step": state.step,
        **_share(None if progress is None else progress.share),
        "text": way_of(state, progress),
        "left_s": None if progress is None else _number(progress.left_s),
        "best_bleu": None if best_bleu is None else _number(best_bleu.bleu),
        "best_loss": None if best_loss is None else _number(best_loss.valid_loss),
        "last_time_ns": state.last_time_ns,
    }


def listed_note(listed: Listed, *, key: str) -> dict[str, JsonValue]:
    """The same, of a run that was read at the ends of its logs."""
    has_ended = listed.state in ENDED
    return {
        "key": key,
        "name": visible(_name(listed.folder)),
        "status": visible(listed.trouble or listed.status),
        "doing": "finished" if has_ended else listed.state,
        "is_silent": listed.state in {"silent", "lost"},
        "is_lost": listed.state == "lost",
        "is_closed": has_ended or listed.state == "imported",
        "ended": visible(listed.text) if has_ended else "",
        "step": listed.step,
        **_share(listed.share),
        "text": visible(listed.way),
        "left_s": None,
        "best_bleu": None if listed.best_bleu is None else _number(listed.best_bleu.value),
        "best_loss": None if listed.best_loss is None else _number(listed.best_loss.value),
        "last_time_ns": listed.last_time_ns,
    }


def _name(run: Path) -> str:
    return run.resolve().name


def _share(share: float | None) -> dict[str, JsonValue]:
    if share is None:
        return {"share": None, "share_text": None}
    return {"share": _number(share), "share_text": share_text(share)}


def explain_failure(error: Exception, run: Path) -> str:
    """One sentence on why a run's log cannot be read now."""
    if not RunLayout(run).log.is_dir():
        return f"the log is gone: {RunLayout(run).log} is not there any more, or its disk is not"
    what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"the log cannot be read: {what or type(error).__name__}"


def _life(state: WatchState, seen: Seen) -> Life:
    return life_of(state, folder=seen.run, now_ns=seen.now_ns)


def _doing(state: WatchState, seen: Seen, life: Life) -> dict[str, JsonValue]:
    has_log = RunLayout(seen.run).log.is_dir()
    told = status(state, life=life, now_ns=_beat_ns(state, seen))
    return {
        "status": visible(told if has_log else explain_failure(FileNotFoundError(), seen.run)),
        "doing": state.doing,
        "is_silent": is_quiet(life) or not has_log,
        "is_lost": life == "lost",
        "is_closed": state.is_closed,
        "ended": visible(state.ended),
    }


def _beat_ns(state: WatchState, seen: Seen) -> int:
    """Now, as a whole number of beats after the last word."""
    return state.last_time_ns + int(silence_s(state, now_ns=seen.now_ns) // BEAT_S * BEAT_S * NANO)


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


def _host(host: WatchedHost, state: WatchState, seen: Seen, life: Life) -> JsonValue:
    """The latest sample in short; shares from 0 to 1, and null where a value is not known.

    Where the sample is too old to tell what the host does now, its age and no values; of a run that is over, the
    last sample, and its age at the end where it was old by then.
    """
    is_over = life == "over"
    described, last = host.described, host.last
    age_s = host.age_s(state.last_time_ns if is_over else seen.now_ns)
    known: dict[str, JsonValue] = {
        "name": visible(host.name),
        "time_ns": None if last is None else last.time_ns,
        "age_s": None if age_s is None else age_s // BEAT_S * BEAT_S,
    }
    if last is None or (age_s is not None and not is_over):
        return {**known, "cpu": None, "memory": None, "gpus": [], "nics": []}
    return {
        **known,
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
                "link": visible(
                    speeds_text(
                        state.delivered(host, place),
                        nominal_bits_per_s=int(_at(described.interface_bits_per_s, place)),
                    )
                ),
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
