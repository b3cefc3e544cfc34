"""Others' sides of the measurement of training on a GPU: models of torch and of Hugging Face in a plain loop."""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.gpu.padded import Rectangles, choose_pairs, load_rectangles
from torch import Tensor, nn
from torch.nn import functional

from tandem.config import ModelSection
from tandem.data.prepared import open_prepared
from tandem.data.shards.shardset import ShardSet

__all__ = ["PEERS", "PeerJob", "TorchTransformer", "measure_peer"]

_MOST_PLACES = 512
_SMOOTHING = 0.1
_RATE = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerJob:
    """One peer at one size; the first `warmup` steps do not count."""

    peer: str
    prepared: Path
    model: ModelSection
    tokens: int
    device: str
    steps: int
    warmup: int
    cudnn_attention: bool
    """Whether torch may choose cuDNN's attention, as it does when nobody says otherwise."""


class TorchTransformer(nn.Module):
    """torch.nn.Transformer with one matrix for source, target and output, and dropout where Tandem has it."""

    places_LD: Tensor  # noqa: N815

    def __init__(self, section: ModelSection, vocabulary: int, pad: int) -> None:
        super().__init__()
        self.pad = pad
        self.scale = math.sqrt(section.width)
        self.embedding = nn.Embedding(vocabulary, section.width)
        nn.init.normal_(self.embedding.weight, std=section.width**-0.5)
        shape: dict[str, Any] = {
            "d_model": section.width,
            "nhead": section.heads,
            "dim_feedforward": section.feed_forward,
            "dropout": section.dropout,
            "batch_first": True,
            "norm_first": True,
        }
        encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(**shape),
            section.encoder_layers,
            norm=nn.LayerNorm(section.width),
            enable_nested_tensor=False,
        )
        self.transformer = nn.Transformer(
            num_decoder_layers=section.decoder_layers, custom_encoder=encoder, **shape
        )
        _drop_less(self.transformer)
        self.dropout = nn.Dropout(section.dropout)
        self.register_buffer("places_LD", _waves(section.width))

    def forward(self, batch: Rectangles) -> Tensor:
        """The smoothed loss, as a mean over real target tokens."""
        length = batch.decoder_input.shape[1]
        # Padding is at the end, where no real target token may look: the causal mask is all that is needed.
        hidden = torch.ones(length, length, dtype=torch.bool, device=batch.source.device).triu(1)
        states = self.transformer(
            self._embed(batch.source),
            self._embed(batch.decoder_input),
            tgt_mask=hidden,
            tgt_is_causal=True,
            src_key_padding_mask=batch.is_padding,
            memory_key_padding_mask=batch.is_padding,
        )
        logits = functional.linear(states, self.embedding.weight)
        return functional.cross_entropy(
            logits.flatten(0, 1), batch.labels.flatten(), ignore_index=self.pad, label_smoothing=_SMOOTHING
        )

    def _embed(self, ids: Tensor) -> Tensor:
        placed: Tensor = self.dropout(self.embedding(ids) * self.scale + self.places_LD[: ids.shape[1]])
        return placed


def _waves(width: int) -> Tensor:
    angles = torch.arange(_MOST_PLACES)[:, None] * torch.exp(
        torch.arange(0, width, 2) * (-math.log(10_000.0) / width)
    )
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def _drop_less(model: nn.Transformer) -> None:
    """Take out dropout of attention weights and inside the feed-forward part, which Tandem's recipe has not."""
    for module in model.modules():
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0
        elif isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
            module.dropout = nn.Identity()  # type: ignore[assignment]


class _Marian(nn.Module):
    """Marian of Hugging Face with its own loss, which does not smooth."""

    def __init__(self, model: nn.Module, pad: int) -> None:
        super().__init__()
        self.model, self.pad = model, pad

    def forward(self, batch: Rectangles) -> Tensor:
        """The loss as Marian computes it from labels."""
        labels = batch.labels.masked_fill(batch.labels == self.pad, -100)
        mask = (~batch.is_padding).long()
        loss: Tensor = self.model(input_ids=batch.source, attention_mask=mask, labels=labels).loss
        return loss


def _build_torch(section: ModelSection, shards: ShardSet) -> nn.Module:
    """A module that turns a batch into its loss."""
    return TorchTransformer(section, shards.vocabulary, shards.special.pad)


def _build_marian(section: ModelSection, shards: ShardSet) -> nn.Module:
    """A module that turns a batch into its loss."""
    transformers = import_module("transformers")
    special = shards.special
    config = transformers.MarianConfig(
        vocab_size=shards.vocabulary,
        d_model=section.width,
        encoder_layers=section.encoder_layers,
        decoder_layers=section.decoder_layers,
        encoder_attention_heads=section.heads,
        decoder_attention_heads=section.heads,
        encoder_ffn_dim=section.feed_forward,
        decoder_ffn_dim=section.feed_forward,
        activation_function="relu",
        dropout=section.dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        max_position_embeddings=_MOST_PLACES,
        scale_embedding=True,
        use_cache=False,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        pad_token_id=special.pad,
        bos_token_id=special.bos,
        eos_token_id=special.eos,
        forced_eos_token_id=special.eos,
        decoder_start_token_id=special.bos,
        attn_implementation="sdpa",
    )
    return _Marian(transformers.MarianMTModel(config), special.pad)


PEERS: dict[str, Callable[[ModelSection, ShardSet], nn.Module]] = {
    "torch.nn.Transformer": _build_torch,
    "Hugging Face Marian": _build_marian,
}
"""By the name that tables show."""


def measure_peer(job: PeerJob) -> dict[str, Any]:
    """Train a peer for a few steps on batches that are on the device already, and time each."""
    device = torch.device(job.device)
    torch.manual_seed(1)
    torch.backends.cuda.enable_cudnn_sdp(job.cudnn_attention)
    shards = open_prepared(job.prepared).train()
    source, target = (
        side.astype(np.int64) + 1 for side in shards.lengths(np.arange(len(shards.blocks.pairs)))
    )
    chosen = choose_pairs(source, target, tokens=job.tokens, dice=np.random.default_rng(1))
    batches = load_rectangles(shards, chosen[: job.warmup + job.steps], device)
    model = PEERS[job.peer](job.model, shards).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=_RATE, betas=(0.9, 0.98), eps=1e-9, fused=True)
    turned = list(islice(cycle(batches), job.warmup + job.steps))
    seconds, losses = _train(model, optimizer, turned, device)
    counted = turned[job.warmup :]
    return {
        **_speed(seconds[job.warmup :], counted),
        "parameters": sum(each.numel() for each in model.parameters() if each.requires_grad),
        "peak_memory_bytes": torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0,
        "first_loss": round(losses[0], 4),
        "last_loss": round(losses[-1], 4),
        "cudnn_attention": job.cudnn_attention,
    }


def _train(
    model: nn.Module, optimizer: torch.optim.Optimizer, batches: Sequence[Rectangles], device: torch.device
) -> tuple[list[float], list[float]]:
    """Seconds and loss of each step; nothing is waited for in between."""
    on_gpu = device.type == "cuda"
    stamps = [_stamp(on_gpu)]
    losses = []
    for batch in batches:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16) if on_gpu else nullcontext():
            loss = model(batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        stamps.append(_stamp(on_gpu))
    held = [float(loss) for loss in losses]
    return [
        start.elapsed_time(stop) / 1e3 if on_gpu else stop - start for start, stop in pairwise(stamps)
    ], held


def _stamp(on_gpu: bool) -> Any:
    if not on_gpu:
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event


def _speed(seconds: Sequence[float], batches: Sequence[Rectangles]) -> dict[str, float]:
    real = sum(batch.target_tokens for batch in batches)
    rates = [batch.target_tokens / each for batch, each in zip(batches, seconds, strict=True)]
    sides = {
        "source": (sum(batch.source_tokens for batch in batches), sum(b.source.numel() for b in batches)),
        "target": (real, sum(batch.labels.numel() for batch in batches)),
    }
    return {
        "target_tokens_per_s": round(statistics.median(rates), 1),
        "mean_target_tokens_per_s": round(real / sum(seconds), 1),
        "target_tokens_per_update": round(real / len(batches), 1),
        "step_ms": round(1e3 * statistics.median(seconds), 3),
        **{f"{side}_padding": round(1 - held / places, 4) for side, (held, places) in sides.items()},
    }
