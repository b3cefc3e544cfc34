"""Predicted steps become lines: one for the fastest host alone, one for each mode, and what they assume."""

from collections.abc import Iterator

from tandem.launch.doctor.examination import Examination
from tandem.launch.doctor.line import Line
from tandem.launch.doctor.quantity import bits_a_second, operations_a_second, seconds, size
from tandem.launch.doctor.steps import HIDING, MODEL_SPEED, PredictedStep, PredictedSteps

__all__ = ["judge_steps"]


def judge_steps(examination: Examination, predicted: PredictedSteps | None) -> Iterator[Line]:
    """Nothing where nothing could be predicted."""
    if predicted is None:
        return
    needs = examination.needs
    hosts = ", ".join(predicted.hosts) if len(predicted.hosts) < 5 else f"{len(predicted.hosts)} hosts"
    tokens_per_s = needs.update_tokens / predicted.alone_s
    yield Line(
        host=hosts,
        what=f"step, {predicted.fastest} alone",
        value=f"{seconds(predicted.alone_s)}, {tokens_per_s:,.0f} target tokens/s",
    )
    for step in predicted.modes:
        times = predicted.alone_s / step.step_s
        value = (
            f"{seconds(step.step_s)}, {step.tokens_per_s:,.0f} target tokens/s, {times:.2f} times {predicted.fastest} "
            f"alone; {100 * step.share:.0f} % is exchange ({size(step.sent_bytes)})"
        )
        what = f"step, {step.mode}"
        if times > 1:
            yield Line(host=hosts, what=what, value=value)
        else:
            cure = _cure(predicted, step, ordered=needs.mode)
            yield Line(host=hosts, what=what, value=value, verdict="poor", cure=cure)
    if predicted.larger is not None:
        best = min(predicted.modes, key=lambda step: step.step_s)
        yield Line(host=hosts, what="larger update", value=f"In mode {best.mode}: {predicted.larger}")
    yield Line(host=hosts, what="steps assume", value=_assumed(examination, predicted))


def _cure(predicted: PredictedSteps, step: PredictedStep, *, ordered: str) -> str:
    """For the mode that the recipe will have what to do instead, for the others why not to take them."""
    best = min(predicted.modes, key=lambda other: other.step_s)
    slow = f"Together the hosts are no faster than {predicted.fastest} alone"
    if step.mode != (best.mode if ordered == "auto" else ordered):
        return f"{slow} in mode {step.mode}."
    if best.step_s < predicted.alone_s:
        return f"{slow} in mode {step.mode}: try --exchange {best.mode}, and see what it does to the loss."
    cure = f"{slow} in any mode: train on {predicted.fastest}"
    if predicted.larger is None:
        return f"{cure}."
    how = "" if step.mode == best.mode else f" with --exchange {best.mode}"
    return f"{cure}, or take a larger update{how}, as below."


def _assumed(examination: Examination, predicted: PredictedSteps) -> str:
    needs = examination.needs
    text = (
        f"{predicted.ranks} ranks compute for {seconds(predicted.compute_s)}: {needs.step_flops / 1e12:,.3g} TFLOP at "
        f"{100 * MODEL_SPEED:.0f} % of the slowest rank's {operations_a_second(predicted.flops_per_s)} in plain "
        f"products; {100 * HIDING:.0f} % of that hides an exchange at {bits_a_second(8 * predicted.link_bytes_per_s)}, "
        f"but for its last {100 * needs.tail_share:.0f} %"
    )
    on_cpu = examination.sums is not None and examination.sums.device == "cpu"
    return f"{text}; encoding takes the processor for a rate measured elsewhere" if on_cpu else text
