"""How big is a checkpoint? By part, against what the number of parameters predicts."""

from collections.abc import Mapping

from tandem.estimate.memory import checkpoint_bytes
from tandem.observe.confidence import Grounds
from tandem.observe.finding import Evidence, Finding, Question
from tandem.observe.numbers import count, megabytes, percent, share
from tandem.observe.series.columns import Checkpoint, Series
from tandem.observe.told import told_link

__all__ = ["QUESTION", "judge"]

QUESTION = Question(
    number=9,
    key="checkpoint_size",
    question="How big is a checkpoint?",
    about="The bytes of the last checkpoint by file, beside what the number of parameters predicts: 4 bytes each for "
    "the weights, 8 for Adam's two moments.",
    would_change="Another number of parameters, or another optimiser.",
)
NUMBER_BYTES = 4
MODEL, OPTIMIZER = "model.safetensors", "optimizer.safetensors"
CLOSE = 0.02
"""Files that differ from the prediction by less are as predicted: headers and names take some bytes."""


def judge(series: Series) -> Finding:
    """Compare the last checkpoint with the arithmetic."""
    parameters = _parameters(series)
    if series.imported is not None and not any(each.bytes for each in series.checkpoints):
        return _imported(parameters)
    expected = checkpoint_bytes(parameters, averaged=_is_averaged(series.recipe))
    if not series.checkpoints:
        return _none(parameters, expected)
    return _measured(series.checkpoints[-1], series=series, parameters=parameters, expected=expected)


def _parameters(series: Series) -> int:
    if series.imported is not None:
        return told_link(series).parameters
    return series.started.parameters if series.started is not None else 0


def _is_averaged(recipe: Mapping[str, object]) -> bool:
    optim = recipe.get("optim")
    return isinstance(optim, Mapping) and bool(optim.get("ema_decay"))


def _measured(last: Checkpoint, *, series: Series, parameters: int, expected: int) -> Finding:
    model, optimizer = last.files.get(MODEL, 0), last.files.get(OPTIMIZER, 0)
    rest = last.bytes - model - optimizer
    parts = (
        f": {megabytes(model)} weights, {megabytes(optimizer)} optimiser, {megabytes(rest)} the rest"
        if model and optimizer
        else ""
    )
    is_comparable = bool(parameters) and series.imported is None
    text = f"{megabytes(last.bytes)}{parts} (after step {count(last.step)})." + (
        _compared(model + optimizer or last.bytes, parameters=parameters, expected=expected)
        if is_comparable
        else ""
    )
    kept = [each for each in series.checkpoints if not each.is_removed and not each.is_rejected]
    evidence = [
        Evidence(
            name="checkpoint",
            value=last.bytes,
            unit="bytes",
            definition="all files of the last one",
            figure="checkpoint_parts",
        ),
        *(
            Evidence(
                name=name, value=size, unit="bytes", definition="size of the file", figure="checkpoint_parts"
            )
            for name, size in sorted(last.files.items(), key=lambda item: -item[1])
        ),
        *(
            _predicted(parameters, expected=expected, averaged=_is_averaged(series.recipe))
            if is_comparable
            else ()
        ),
        Evidence(
            name="all kept",
            value=sum(each.bytes for each in kept),
            unit="bytes",
            definition=f"{count(len(kept))} checkpoints that were not removed, on each host that writes them",
        ),
        Evidence(name="writing", value=last.write_s, unit="s", definition="of the last one, beside training"),
        Evidence(name="training waited", value=last.blocked_s, unit="s", definition="for the last one"),
    ]
    missing = () if is_comparable else ("the number of parameters",)
    return QUESTION.answer(
        "measured",
        Grounds(),
        text,
        evidence=tuple(evidence),
        missing=missing,
        figure="checkpoint_parts",
    )


def _compared(size: int, *, parameters: int, expected: int) -> str:
    apart = share(size, expected) - 1
    rule = f" {count(parameters)} parameters predict {megabytes(expected)} of weights and optimiser"
    if abs(apart) <= CLOSE:
        return f"{rule}: as it is."
    return f"{rule}: it is {percent(abs(apart))} {'more' if apart > 0 else 'less'}."


def _predicted(parameters: int, *, expected: int, averaged: bool) -> tuple[Evidence, ...]:
    beside = "two moments and the weights beside their running average" if averaged else "two moments"
    return (
        Evidence(
            name="weights, predicted",
            value=parameters * NUMBER_BYTES,
            unit="bytes",
            definition="parameters · 4 bytes",
        ),
        Evidence(
            name="optimiser, predicted",
            value=expected - parameters * NUMBER_BYTES,
            unit="bytes",
            definition=f"parameters · 4 bytes for each of: {beside}",
        ),
    )


def _none(parameters: int, expected: int) -> Finding:
    if not parameters:
        return QUESTION.cannot_tell("Cannot tell: none was written, and the log has no number of parameters.")
    text = (
        f"None was written. {count(parameters)} parameters predict {megabytes(expected)} of weights and optimiser, and "
        f"a little more for the subword model."
    )
    evidence = _predicted(parameters, expected=expected, averaged=expected > 12 * parameters)
    return QUESTION.cannot_tell(text, evidence=evidence, missing=("a checkpoint",))


def _imported(parameters: int) -> Finding:
    if not parameters:
        return QUESTION.cannot_tell(
            "Cannot tell: the files have neither a checkpoint nor the number of parameters.",
            missing=("the number of parameters", "a checkpoint"),
        )
    expected = checkpoint_bytes(parameters, averaged=False)
    text = (
        f"Not measured: no checkpoint is in the files. {count(parameters)} parameters predict {megabytes(expected)} "
        f"(weights and two moments of Adam in fp32), with fp32 copies or other variables of the tool more."
    )
    evidence = _predicted(parameters, expected=expected, averaged=False)
    return QUESTION.cannot_tell(text, evidence=evidence, missing=("a checkpoint",))
