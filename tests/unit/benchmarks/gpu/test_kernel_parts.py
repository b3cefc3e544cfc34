"""All sides of a contest do the same work."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import pytest
import torch
from benchmarks.gpu import attention_contests
from benchmarks.gpu.contest import OURS, hold
from benchmarks.gpu.kernel_parts import PARTS, build_contest
from benchmarks.gpu.setting import Setting
from benchmarks.gpu.stopwatch import Stopwatch, Timed

from tandem.config import ModelSection


class Small(Setting):
    """A model with few weights, as a step of Adam visits each of them."""

    @cached_property
    def model(self) -> ModelSection:
        layers = {"encoder_layers": 1, "decoder_layers": 1}
        return ModelSection.model_validate(
            {"preset": self.size, "width": 64, "heads": 2, "feed_forward": 128, **layers}
        )


DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SETTING = Small(size="tiny", places=96, vocabulary=96, device=DEVICE)
FLEX = "flex_attention, compiled"
NOT_ON_A_CPU = {
    "self attention": {"varlen_attn"},
    "causal attention": {"varlen_attn", "nested sdpa"},
    "cross attention": {"varlen_attn"},
}
SECONDS = 200


class OneCall(Stopwatch):
    """Speed is not what is tested."""

    def time(self, run: Callable[[], object]) -> Timed:
        run()
        return Timed(us=1.0, how="eager")


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # when a compiler is imported
@pytest.mark.parametrize(
    ("part", "kernel"), [(part, kernel) for part, (kernels, _) in PARTS.items() for kernel in kernels]
)
def test_sides_find_the_same(part: str, kernel: str) -> None:
    contest = PARTS[part][1](SETTING, kernel)
    # Without a compiler it knows no gradients.
    contest = replace(contest, contenders=[each for each in contest.contenders if each.name != FLEX])
    with torch.compiler.set_stance("force_eager"):
        rows = hold(contest, OneCall(DEVICE), bytes_per_s=1e12, until=time.monotonic() + SECONDS)
    failed = {row["side"]: row["error"] for row in rows if "error" in row}
    expected = NOT_ON_A_CPU.get(kernel, set()) if DEVICE.type == "cpu" else set()
    assert set(failed) == expected, failed
    timed = {row["side"] for row in rows if "us" in row}
    assert timed == {each.name for each in contest.contenders} - expected


@pytest.mark.parametrize("kind", ["self", "causal", "cross"])
def test_the_rule_of_the_block_mask_is_what_our_attention_does(kind: str) -> None:
    problem = attention_contests._pose(SETTING, kind)
    rule, *_ = attention_contests._mask_rule(problem)
    own, others = (torch.arange(SETTING.places, device=DEVICE) for _ in range(2))
    mask = rule(None, None, own[:, None], others[None, :])
    query, key, value = (
        each.double().transpose(0, 1) for each in (problem.query, problem.key, problem.value)
    )
    wanted = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    found = attention_contests._ours(problem, share=0.0).outcome["out"]
    torch.testing.assert_close(
        found.double(), wanted.transpose(0, 1)[: problem.query_tokens], rtol=0.02, atol=0.02
    )


def test_what_must_be_compiled_is_left_out_on_a_cpu() -> None:
    setting = Setting(size="tiny", places=64, vocabulary=64, device=torch.device("cpu"))
    contest = build_contest(setting, part="norm", kernel="column sums")
    assert [each.name for each in contest.contenders] == [OURS, "eager"]
