"""What files make a checkpoint? Each and what it holds, and how many checkpoints were written, kept and removed."""

import math

from tandem.observe.confidence import Grounds, Kind
from tandem.observe.facts import fact_number
from tandem.observe.finding import Evidence, Finding, Question
from tandem.observe.numbers import count
from tandem.observe.series.columns import Checkpoint, Series
from tandem.observe.steady import lost_lines, unlogged_steps
from tandem.runlog.event import CheckpointFailed, CheckpointRejected

__all__ = ["QUESTION", "judge"]

QUESTION = Question(
    number=8,
    key="checkpoint_files",
    question="What files make a checkpoint?",
    about="The files that a checkpoint consists of and what each holds, and which checkpoints are still there.",
    would_change="A checkpoint that is written, or the folder of the run itself.",
)
HOLDS = {
    "model.safetensors": "the weights in fp32: what translates",
    "optimizer.safetensors": "the optimiser's state: both moments of every weight, to go on exactly",
    "state.json": "the step, the place in the data, and the best scores so far",
    "recipe.yaml": "the whole recipe: what the run is",
    "manifest.json": "size and checksum of each file",
}
SUBWORD = "the subword model: text to pieces and back"
AVERAGED = {
    "model.safetensors": "the running average of the weights in fp32: what translates",
    "optimizer.safetensors": "both moments of every weight and the weights themselves, to go on exactly",
}
TENSORFLOW = {
    "model.ckpt-STEP.data-00000-of-00001": "all variables: weights, and what the optimiser keeps for each",
    "model.ckpt-STEP.index": "where each variable lies in the data file",
    "model.ckpt-STEP.meta": "the graph: what is computed with them",
}

LISTING = "a listing of the run's folder"
LINES = "lines of the log that are lost, and may have been those of checkpoints"
MADE = "A checkpoint of this tool is three files: data (all variables), index (where each lies), meta (the graph)."


def judge(series: Series) -> Finding:
    """List the files of the last checkpoint."""
    if series.imported is not None and not any(each.files for each in series.checkpoints):
        return _imported(series)
    if not series.checkpoints:
        return _none(series)
    last = series.checkpoints[-1]
    named = ", ".join(_by_size(last)) if last.files else "files that the log does not name"
    failed = _failures(series)
    text = f"A checkpoint is {_plural(len(last.files), 'file')} in one folder: {named}. {_history(series)}"
    if failed:
        text += f" {failed[-1].value}."
    return QUESTION.answer(
        "measured",
        Grounds(
            kind=Kind.MEASURED if last.files else Kind.ASSUMED,
            lacks=_lost(series),
        ),
        text,
        evidence=(*_files(last, _holds(series)), *_counts(series), *failed),
        missing=(*(() if last.files else ("the names of its files",)), *_lost(series)),
        figure="checkpoint_parts" if last.files else "",
    )


def _holds(series: Series) -> dict[str, str]:
    if series.imported is not None:
        return {}
    optim = series.recipe.get("optim")
    is_averaged = isinstance(optim, dict) and bool(optim.get("ema_decay"))
    return {**HOLDS, **AVERAGED} if is_averaged else HOLDS


def _files(checkpoint: Checkpoint, holds: dict[str, str]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            name=name, value=size, unit="bytes", definition=_meaning(name, holds), figure="checkpoint_parts"
        )
        for name, size in _by_size(checkpoint).items()
    )


def _by_size(checkpoint: Checkpoint) -> dict[str, int]:
    return dict(sorted(checkpoint.files.items(), key=lambda item: -item[1]))


def _meaning(name: str, holds: dict[str, str]) -> str:
    if name in holds:
        return holds[name]
    for ending, meaning in (
        (".model", SUBWORD),
        *((key.rpartition("STEP")[2], TENSORFLOW[key]) for key in TENSORFLOW),
    ):
        if name.endswith(ending):
            return meaning
    return "not known to this version"


def _history(series: Series) -> str:
    written, kept = len(series.checkpoints), _kept(series)
    first, last = series.checkpoints[0], series.checkpoints[-1]
    where = (
        f"the last after step {count(last.step)} in {last.folder}"
        if last.folder
        else f"the last after step {count(last.step)}"
    )
    if written == 1:
        text = f"One was written, after step {count(first.step)}" + (
            f" in {first.folder}" if first.folder else ""
        )
    else:
        text = f"{_plural(written, 'was', 'were')} written, the first after step {count(first.step)}, {where}"
    gone = ((_removed(series), "removed"), (_set_aside(series), "set aside as spoilt"))
    parts = (f"{_plural(len(kept), 'is', 'are')} kept", *(f"{count(n)} {how}" for n, how in gone if n))
    known = ", by the lines that are left of the log" if _lost(series) else ""
    return f"{text}; {', '.join(parts[:-1])}{' and ' if parts[1:] else ''}{parts[-1]}{known}."


def _lost(series: Series) -> tuple[str, ...]:
    """What of the log is lost and may have been of checkpoints: a step that is missing explains one lost line."""
    return (LINES,) if lost_lines(series) > unlogged_steps(series) else ()


def _kept(series: Series) -> tuple[Checkpoint, ...]:
    """Those that a run can go on from, as far as the log knows."""
    return tuple(each for each in series.checkpoints if not each.is_removed and not each.is_rejected)


def _removed(series: Series) -> int:
    return sum(each.is_removed for each in series.checkpoints)


def _set_aside(series: Series) -> int:
    return sum(each.is_rejected and not each.is_removed for each in series.checkpoints)


def _counts(series: Series) -> tuple[Evidence, ...]:
    kept = _kept(series)
    hosts = series.started.checkpoint_hosts if series.started is not None else ()
    found = [
        Evidence(
            name="written",
            value=len(series.checkpoints),
            definition="checkpoints that were whole on the disk",
        ),
        Evidence(
            name="kept, by the lines that are left" if _lost(series) else "kept",
            value=len(kept),
            definition="neither removed by the run itself nor found spoilt",
        ),
        Evidence(
            name="removed",
            value=_removed(series),
            definition="deleted by the run to make room for newer or better ones",
        ),
        Evidence(
            name="folders kept",
            value=", ".join(each.folder for each in kept if each.folder) or "none",
            definition="in the run folder",
        ),
    ]
    if hosts:
        found.append(
            Evidence(
                name="hosts", value=", ".join(hosts), definition="on whose disks checkpoints are written"
            )
        )
    return tuple(found)


def _failures(series: Series) -> tuple[Evidence, ...]:
    failed = [mark.event for mark in series.marks if isinstance(mark.event, CheckpointFailed)]
    spoilt = [mark.event for mark in series.marks if isinstance(mark.event, CheckpointRejected)]
    found = []
    if spoilt:
        found.append(
            Evidence(
                name="rejected",
                value=f"{_plural(len(spoilt), 'was', 'were')} found spoilt: {spoilt[-1].reason}",
                definition="checkpoints that were torn or spoilt, and are not used",
            )
        )
    if failed:
        found.append(
            Evidence(
                name="failed",
                value=f"{_plural(len(failed), 'checkpoint')} could not be written, the last after step "
                f"{count(failed[-1].step)}: {failed[-1].reason}",
                definition="checkpoints that could not be written; the ones before are untouched",
            )
        )
    return tuple(found)


def _none(series: Series) -> Finding:
    failed = _failures(series)
    if failed:
        text = f"None is there: {failed[-1].value}."
        return QUESTION.answer(
            "measured",
            Grounds(),
            text,
            evidence=failed,
            advice="See to the disk of the run folder: nothing can be resumed.",
            figure="checkpoint_parts",
        )
    if not len(series.steps):
        return QUESTION.cannot_tell("Cannot tell: no step was made and no checkpoint was written.")
    going = "so far" if not series.is_closed else "in this run"
    text = f"No checkpoint was written {going}. One would be a folder with {', '.join(HOLDS)} and the subword model."
    return QUESTION.answer(
        "measured",
        Grounds(lacks=_lost(series)),
        text,
        missing=_lost(series),
        advice="Until one is written, a crash loses all work.",
    )


def _imported(series: Series) -> Finding:
    """By the tool's kind of checkpoint, its plan, and the checkpoints that its log names."""
    is_tensorflow = series.imported is not None and series.imported.tool == "openseq2seq"
    every = fact_number(series, "save_checkpoint_steps")
    found = (_named(series), _planned(series, every), _best_models(series))
    sentences = [text for text in (*found, MADE if is_tensorflow else "") if text]
    if not any(found):
        sentences.insert(0, "Cannot tell: the files that were read name no checkpoint and no plan for them.")
    files = tuple(
        Evidence(name=name, value=meaning, definition="as TensorFlow 1 writes a checkpoint")
        for name, meaning in TENSORFLOW.items()
        if is_tensorflow
    )
    plan = Evidence(
        name="save_checkpoint_steps", value=every, definition="a checkpoint after so many steps each"
    )
    advice = (
        "Save every few thousand steps: what comes after the last saved model is lost when a run dies."
        if every > _steps_done(series)
        else ""
    )
    evidence = (*((plan,) if every > 0 else ()), *files)
    text = " ".join(sentences)
    if not (is_tensorflow and any(found)):
        return QUESTION.cannot_tell(text, evidence=evidence, missing=(LISTING,), advice=advice)
    # What a tool's plan and its rules say is on the disk was not seen there.
    return QUESTION.answer(
        "measured", Grounds(kind=Kind.NOMINAL), text, evidence=evidence, missing=(LISTING,), advice=advice
    )


def _steps_done(series: Series) -> int:
    return int(series.steps.step[-1]) if len(series.steps) else 0


def _named(series: Series) -> str:
    """Checkpoints that the log says there are."""
    saved = series.checkpoints
    sources = [start.resumed_from for _, start in series.starts if start.resumed_from]
    text = ""
    if saved:
        where = f" as {saved[-1].folder}" if saved[-1].folder else ""
        names = (
            "one checkpoint, saved" if len(saved) == 1 else f"{count(len(saved))} checkpoints, the last saved"
        )
        text = f"The log names {names} at step {count(saved[-1].step)}{where}. "
    if sources:
        text += f"It went on from {sources[-1]}, so that one was there. "
    return text.strip()


def _planned(series: Series, every: float) -> str:
    if math.isnan(every) or every <= 0:
        return ""
    done, due = _steps_done(series), count(int(every))
    is_named = bool(_named(series))
    if every > done and not is_named:
        return (
            f"By its plan it would have saved its first regular checkpoint after {due} steps, and the log ends after "
            f"{count(done)}."
        )
    text = f"By its plan a regular one was due every {due} steps, {count(done // int(every))} by step {count(done)}"
    return f"{text}." if is_named else f"{text}; the log names none that was written."


def _best_models(series: Series) -> str:
    """What the tool keeps beside its regular checkpoints: the best model at each evaluation."""
    told = series.imported.facts.get("best_checkpoints") if series.imported is not None else None
    lowest, steps = math.inf, []
    for each in series.evaluations:
        if each.valid_loss < lowest:
            lowest = each.valid_loss
            steps.append(each.step)
    if not told:
        return ""
    rule = "Beside regular ones it saves its model after each evaluation with the lowest loss so far, in best_models"
    if not steps:
        return f"{rule}; the log has no evaluation yet."
    times = f"{_plural(len(steps), 'time')} by that rule, last at step {count(steps[-1])} (loss {lowest:.4f})"
    return f"{rule}: {times}. The log does not name these files."


def _plural(number: int, noun: str, several: str = "") -> str:
    return f"{count(number)} {noun if number == 1 else several or noun + 's'}"
