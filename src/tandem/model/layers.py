"""The layers of a Transformer: they work on the last dimension and leave the layout to attention."""

# Shapes: X the leading shape of a batch's tokens, D width, F feed-forward width, H heads, K width of a head.

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional

from tandem.config import ModelSection
from tandem.model.attend import Attend
from tandem.model.dropout import add_dropped, dropped
from tandem.model.positions import Positions

__all__ = [
    "CrossAttention",
    "DecoderLayer",
    "EncoderLayer",
    "FeedForward",
    "Residual",
    "SelfAttention",
    "build_norm",
]

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "silu": functional.silu,
}


def build_norm(section: ModelSection) -> nn.Module:
    """The normalisation that the recipe asks for."""
    if section.norm == "rms":
        return nn.RMSNorm(section.width, eps=1e-6)
    return nn.LayerNorm(section.width, eps=1e-5)


class SelfAttention(nn.Module):
    """Tokens look at tokens of the same side; one projection makes queries, keys and values."""

    def __init__(self, section: ModelSection) -> None:
        super().__init__()
        self.heads, self.head_width = section.heads, section.width // section.heads
        self.dropout = section.attention_dropout
        self.query_key_value = nn.Linear(section.width, 3 * section.width)
        self.output = nn.Linear(section.width, section.width)

    def forward(self, x_XD: Tensor, *, attend: Attend, positions: Positions) -> Tensor:
        """[X, D]"""
        mixed: Tensor = self.query_key_value(x_XD)
        query, key, value = mixed.view(*x_XD.shape[:-1], 3, self.heads, self.head_width).unbind(-3)
        dropout = self.dropout if self.training else 0.0
        attended = attend(positions.rotate(query), positions.rotate(key), value, dropout=dropout)
        output: Tensor = self.output(attended.flatten(-2))
        return output


class CrossAttention(nn.Module):
    """Target tokens look at source tokens, whose keys and values may be kept from step to step."""

    def __init__(self, section: ModelSection) -> None:
        super().__init__()
        self.heads, self.head_width = section.heads, section.width // section.heads
        self.dropout = section.attention_dropout
        self.query = nn.Linear(section.width, section.width)
        self.key_value = nn.Linear(section.width, 2 * section.width)
        self.output = nn.Linear(section.width, section.width)

    def keys_and_values(self, memory_XD: Tensor) -> tuple[Tensor, Tensor]:
        """Two times [X, H, K]."""
        mixed: Tensor = self.key_value(memory_XD)
        key, value = mixed.view(*memory_XD.shape[:-1], 2, self.heads, self.head_width).unbind(-3)
        return key, value

    def forward(self, x_XD: Tensor, *, seen: tuple[Tensor, Tensor], attend: Attend) -> Tensor:
        """[X, D]"""
        query: Tensor = self.query(x_XD)
        dropout = self.dropout if self.training else 0.0
        attended = attend(query.view(*x_XD.shape[:-1], self.heads, self.head_width), *seen, dropout=dropout)
        output: Tensor = self.output(attended.flatten(-2))
        return output


class FeedForward(nn.Module):
    """Two linear maps with an activation between; gated, a second map is multiplied with the activation."""

    def __init__(self, section: ModelSection) -> None:
        super().__init__()
        self.activation = _ACTIVATIONS[section.activation]
        self.gated = section.gated
        self.dropout = section.activation_dropout
        self.inner = nn.Linear(section.width, section.feed_forward * (2 if section.gated else 1))
        self.output = nn.Linear(section.feed_forward, section.width)

    def forward(self, x_XD: Tensor) -> Tensor:
        """[X, D]"""
        inner_XF: Tensor = self.inner(x_XD)
        if self.gated:
            active_XF, gate_XF = inner_XF.chunk(2, dim=-1)
            inner_XF = self.activation(active_XF) * gate_XF
        else:
            inner_XF = self.activation(inner_XF)
        output: Tensor = self.output(dropped(inner_XF, share=self.dropout, training=self.training))
        return output


class Residual(nn.Module):
    """The way around a sublayer, normalised before it (pre-norm) or after the sum (post-norm)."""

    def __init__(self, section: ModelSection) -> None:
        super().__init__()
        self.before = section.norm_place == "pre"
        self.dropout = section.dropout
        self.norm = build_norm(section)

    def forward(self, x_XD: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """[X, D]"""
        changed = sublayer(self.norm(x_XD) if self.before else x_XD)
        summed = add_dropped(x_XD, changed, share=self.dropout, training=self.training)
        result: Tensor = summed if self.before else self.norm(summed)
        return result


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward."""

    def __init__(self, section: ModelSection) -> None:
        super().__init__()
        self.attention = SelfAttention(section)
        self.feed_forward = FeedForward(section)
        self.around_attention = Residual(section)
        self.around_feed_forward = Residual(section)

    def forward(self, x_XD: Tensor, *, attend: Attend, positions: Positions) -> Tensor:
        """[X, D]"""
        x_XD = self.around_attention(x_XD, lambda x: self.attention(x, attend=attend, positions=positions))
        result: Tensor = self.around_feed_forward(x_XD, self.feed_forward)
        return result


class DecoderLayer(nn.Module):
    """Self-attention over what was said, attention over the source, and feed-forward."""

    def __init__(self, section: ModelSection) -> None:
        super().__init__()
        self.attention = SelfAttention(section)
        self.cross_attention = CrossAttention(section)
        self.feed_forward = FeedForward(section)
        self.around_attention = Residual(section)
        self.around_cross_attention = Residual(section)
        self.around_feed_forward = Residual(section)

    def forward(
        self,
        x_XD: Tensor,
        *,
        seen: tuple[Tensor, Tensor],
        within: Attend,
        across: Attend,
        positions: Positions,
    ) -> Tensor:
        """[X, D]; `seen` are the source's keys and values for this layer."""
        x_XD = self.around_attention(x_XD, lambda x: self.attention(x, attend=within, positions=positions))
        x_XD = self.around_cross_attention(x_XD, lambda x: self.cross_attention(x, seen=seen, attend=across))
        result: Tensor = self.around_feed_forward(x_XD, self.feed_forward)
        return result
