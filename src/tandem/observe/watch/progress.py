"""How far a run has come, when it will end, and what it is doing, in words."""

import math
from dataclasses import dataclass, replace

from tandem.observe.numbers import count, duration, share, short_count
from tandem.observe.shares import brief_shares
from tandem.observe.visible import visible
from tandem.observe.watch.life import Life, silence_s, word_of
from tandem.observe.watch.state import WatchState
from tandem.runlog.event import TrainingStarted

__all__ = [
    "Progress",
    "equipment_of",
    "numbers_of",
    "progress_of",
    "share_text",
    "status",
    "way_of",
]

MINUTE_S = 60
SETTLED_STEPS = 10
"""After a start: what the first steps take says little of the others."""
ROUNDING = 1e-9
UNKNOWN = "–"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The way to the stop rule that will end the run first."""

    share: float
    """Done, from 0 to 1."""
    text: str
    left_s: float | None
    """Until the end, evaluations and checkpoints included; None while nobody can know."""


def share_text(part: float) -> str:
    """A share of the way in whole percent; all of it only at the end."""
    return f"{math.floor(100 * part + ROUNDING)} %"


def progress_of(state: WatchState, *, life: Life) -> Progress | None:
    """How far the run has come; None before training starts, and where no stop rule is known."""
    if state.started is None or state.imported is not None:
        return None
    ways = _ways(state, state.started)
    timed = [way for way in ways if way.left_s is not None]
    if not ways:
        return None
    first = min(timed, key=lambda way: way.left_s or 0.0) if timed else max(ways, key=lambda way: way.share)
    return first if _goes_on(state, life) else replace(first, left_s=None)


def _goes_on(state: WatchState, life: Life) -> bool:
    is_training = life == "at work" and state.doing in {"training", "evaluating"}
    return is_training and len(state.recent) >= SETTLED_STEPS


def _ways(state: WatchState, started: TrainingStarted) -> list[Progress]:
    step, pace = f"step {count(state.step)}", state.recent
    spent_s, kept_s = state.spent.total_s, state.spent.kept_s
    # Pauses between steps are taken to go on as they were.
    stretch = share(spent_s, state.spent.training_s)
    ways = []
    if started.max_steps > 0:
        steps_left = max(0, started.max_steps - state.step)
        ways += [
            Progress(
                share=min(1.0, share(state.step, started.max_steps)),
                text=f"{step} of {count(started.max_steps)}",
                left_s=steps_left * pace.step_s * stretch if pace.step_s else None,
            )
        ]
    if started.max_tokens:
        tokens_left = max(0, started.max_tokens - state.tokens)
        ways += [
            Progress(
                share=min(1.0, state.tokens / started.max_tokens),
                text=f"{step}, {short_count(state.tokens)} of {short_count(started.max_tokens)} tokens",
                left_s=tokens_left / pace.tokens_per_s * stretch if pace.tokens_per_s else None,
            )
        ]
    if started.max_minutes:
        limit_s = started.max_minutes * MINUTE_S
        ways += [
            Progress(
                share=min(1.0, kept_s / limit_s),
                text=f"{step}, {kept_s / MINUTE_S:.1f} of {started.max_minutes:g} min",
                left_s=max(0.0, limit_s - kept_s) if kept_s else None,
            )
        ]
    return ways


def way_of(state: WatchState, progress: Progress | None) -> str:
    """How far the run has come, in words, also where nobody knows of how much."""
    if progress is not None:
        return progress.text
    return f"step {count(state.step)}" if state.step else "no step yet"


def numbers_of(state: WatchState) -> dict[str, str]:
    """What a display shows of the last steps, by name, as texts."""
    last, recent = state.recent.last, state.recent
    has_clock = state.imported is None or state.imported.times == "wall"
    shown = {
        "epoch": (float(state.epoch + 1), ",.0f"),
        "loss": (recent.loss, ".3f"),
        "nll": (recent.nll, ".3f"),
        "target tokens/s": (recent.tokens_per_s or math.nan, ",.0f"),
        "learning rate": (last.learning_rate if last else math.nan, ".2e"),
        "gradient norm": (last.gradient_norm if last else math.nan, ".2f"),
    }
    # What is no number in a run of our own is news; of another tool's it was not told.
    told = {
        name: UNKNOWN
        if last is None or (state.imported is not None and math.isnan(value))
        else f"{value:{form}}"
        for name, (value, form) in shown.items()
    }
    return {**told, "wall time": duration(state.wall_s) if has_clock else UNKNOWN}


def equipment_of(state: WatchState) -> str:
    """What the run trains, and with what, as far as it is known; empty before training starts."""
    started = state.started
    if started is None:
        return ""
    ranks = f"{started.ranks} rank{'s' if started.ranks > 1 else ''}" if started.ranks else ""
    device = f"{started.device} {started.precision}".strip()
    parameters = f"{short_count(started.parameters)} parameters" if started.parameters else ""
    shares = brief_shares(state.shares) if state.shares is not None else ""
    with_what = ", ".join(filter(None, (ranks, device, shares)))
    mode = "" if state.exchange is None else state.exchange.mode
    exchange = f"{mode} exchange" if mode and mode != "exact" else ""
    return visible(" · ".join(filter(None, (with_what, exchange, parameters))))


def status(state: WatchState, *, life: Life, now_ns: int) -> str:
    """What the run is doing now, and after a restart in which attempt."""
    attempt = f", attempt {count(state.attempt)}" if state.attempt > 1 else ""
    word = word_of(state, life)
    if life == "over":
        is_told = not state.ended or state.imported is not None
        ended = word if is_told else state.ended if state.ended.startswith(word) else f"{word}: {state.ended}"
        return f"{ended}{attempt}"
    doing = f"preparing data: {state.stage}" if state.doing == "preparing" else state.doing
    quiet = duration(silence_s(state, now_ns=now_ns))
    match life:
        case "silent":
            return f"silent for {quiet} (was {doing}{attempt})"
        case "lost":
            return f"lost for {quiet}: its process is gone without a word (was {doing}{attempt})"
    return f"{doing}{attempt}"
