"""How far a run has come, when it will end, and what it is doing, in words."""

from dataclasses import dataclass

from tandem.observe.numbers import count, duration, share, short_count
from tandem.observe.visible import visible
from tandem.observe.watch.state import WatchState
from tandem.runlog.event import TrainingStarted

__all__ = ["Progress", "equipment_of", "is_silent", "numbers_of", "progress_of", "status"]

MINUTE_S = 60
NANO = 1_000_000_000
SILENT_S = 30.0
SILENT_EVALUATION_S = 300.0
"""Translating a large set takes a while, and nothing is said meanwhile."""
SILENT_STEPS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The way to the stop rule that will end the run first."""

    share: float
    """Done, from 0 to 1."""
    text: str
    left_s: float | None
    """Until the end, evaluations and checkpoints included; None while the pace is not known."""


def progress_of(state: WatchState) -> Progress | None:
    """How far the run has come; None before training starts."""
    if state.started is None:
        return None
    ways = _ways(state, state.started)
    timed = [way for way in ways if way.left_s is not None]
    return min(timed, key=lambda way: way.left_s or 0.0) if timed else max(ways, key=lambda way: way.share)


def _ways(state: WatchState, started: TrainingStarted) -> list[Progress]:
    step, pace = f"step {count(state.step)}", state.recent
    spent_s, kept_s = state.spent.total_s, state.spent.kept_s
    # Pauses between steps are taken to go on as they were.
    stretch = share(spent_s, state.spent.training_s)
    steps_left = max(0, started.max_steps - state.step)
    ways = [
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


def numbers_of(state: WatchState) -> dict[str, str]:
    """What a display shows of the last steps, by name, as texts."""
    last, recent = state.recent.last, state.recent
    return {
        "epoch": count(state.epoch + 1) if last else "–",
        "loss": f"{recent.loss:.3f}" if last else "–",
        "nll": f"{recent.nll:.3f}" if last else "–",
        "target tokens/s": f"{recent.tokens_per_s:,.0f}" if last else "–",
        "learning rate": f"{last.learning_rate:.2e}" if last else "–",
        "gradient norm": f"{last.gradient_norm:.2f}" if last else "–",
        "elapsed": duration(state.spent.total_s),
    }


def equipment_of(state: WatchState) -> str:
    """What the run trains, and with what; empty before training starts."""
    started = state.started
    if started is None:
        return ""
    ranks = f"{started.ranks} rank{'s' if started.ranks > 1 else ''}"
    parameters = f"{short_count(started.parameters)} parameters"
    return visible(f"{ranks}, {started.device} {started.precision} · {parameters}")


def status(state: WatchState, *, now_ns: int) -> str:
    """What the run is doing now."""
    if state.doing == "finished":
        return f"finished: {state.ended}" if state.ended else "finished"
    doing = f"preparing data: {state.stage}" if state.doing == "preparing" else state.doing
    if is_silent(state, now_ns=now_ns):
        return f"silent for {duration(_silence_s(state, now_ns))} (was {doing})"
    return doing


def is_silent(state: WatchState, *, now_ns: int) -> bool:
    """Whether the run has said nothing for longer than its work explains."""
    if state.doing == "finished" or not state.last_time_ns:
        return False
    patience_s = SILENT_S if state.doing == "training" else SILENT_EVALUATION_S
    return _silence_s(state, now_ns) > max(patience_s, SILENT_STEPS * state.recent.step_s)


def _silence_s(state: WatchState, now_ns: int) -> float:
    return max(0.0, (now_ns - state.last_time_ns) / NANO)
