"""Rows for kernels are packed as a real batch is, with lengths like those of real text."""

import torch
from benchmarks.gpu.setting import SPECIAL, Setting

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def test_a_row_is_nearly_full_of_sentences_as_long_as_real_ones() -> None:
    row = Setting(size="base", places=32_768, vocabulary=32_000, device=DEVICE).row
    for side, tokens, mean in (
        (row.source, row.source_tokens, 27.0),
        (row.target, row.target_tokens, 28.7),
    ):
        lengths = side.bounds.diff()[: row.pairs]
        assert int(lengths.sum()) == tokens
        assert abs(float(lengths.float().mean()) / mean - 1) < 0.1
        assert int(side.bounds[-1]) == tokens
        assert bool((side.ids[tokens:] == SPECIAL.pad).all())
        assert int(side.ids.max()) < 32_000
    assert 0.98 < max(row.source_tokens, row.target_tokens) / 32_768 <= 1
    assert int((row.labels != SPECIAL.pad).sum()) == row.target_tokens


def test_numbers_differ_from_draw_to_draw() -> None:
    setting = Setting(size="tiny", places=64, vocabulary=64, device=DEVICE)
    first, second = setting.draw(4, 8), setting.draw(4, 8)
    assert first.dtype == (torch.bfloat16 if DEVICE.type == "cuda" else torch.float16)
    assert not torch.equal(first, second)
