"""Models with their first weights, the same for the same seed on every machine."""

import torch
from torch import Tensor, nn

from tandem.config import ModelSection
from tandem.errors import TandemError
from tandem.model.layers import CrossAttention, FeedForward, SelfAttention
from tandem.model.transformer import Transformer

__all__ = ["build_model", "matrices_of", "parameter_count"]


def build_model(
    section: ModelSection, *, source_vocabulary: int, target_vocabulary: int, pad: int, seed: int
) -> Transformer:
    """A model on the CPU; the global random state is neither read nor changed."""
    if section.tied == "all" and source_vocabulary != target_vocabulary:
        raise TandemError(
            f"Source and target cannot share one embedding, as they have {source_vocabulary} and "
            f"{target_vocabulary} pieces: set model.tied to target or none."
        )
    with torch.device("meta"):
        model = Transformer(
            section, source_vocabulary=source_vocabulary, target_vocabulary=target_vocabulary, pad=pad
        )
    # Not by to_empty, which asks Python for the shape of a matrix without memory and for that loads all of sympy.
    empty = {
        name: torch.empty(value.shape, dtype=value.dtype, device="cpu")
        for name, value in model.state_dict().items()
    }
    model.load_state_dict(empty, assign=True)
    _fill(model, torch.Generator().manual_seed(seed))
    return model


def parameter_count(model: nn.Module) -> int:
    """How many numbers are learnt; a shared matrix counts once."""
    return sum(parameter.numel() for parameter in model.parameters())


def matrices_of(model: nn.Module) -> dict[Tensor, int]:
    """The weights of all linear maps, and how many maps each one holds, one below the other; no embeddings."""
    return {weight: parts for module in model.modules() for weight, parts, _ in _projections(module)}


@torch.no_grad()
def _fill(model: Transformer, generator: torch.Generator) -> None:
    for module in model.modules():
        if isinstance(module, nn.LayerNorm | nn.RMSNorm):
            module.reset_parameters()
        elif isinstance(module, nn.Linear):
            module.bias.zero_()
    for embedding in (model.target_embedding, model.source_embedding, model.output_projection):
        if embedding is not None:
            embedding.normal_(std=model.section.width**-0.5, generator=generator)
            embedding[model.pad] = 0
    for module in model.modules():
        for weight, parts, gain in _projections(module):
            for part in weight.chunk(parts):
                nn.init.xavier_uniform_(part, gain, generator)


def _projections(module: nn.Module) -> list[tuple[Tensor, int, float]]:
    # Fused matrices are drawn as the separate ones that they stand for; the gain is fairseq's.
    match module:
        case SelfAttention():
            return [(module.query_key_value.weight, 3, 2**-0.5), (module.output.weight, 1, 1.0)]
        case CrossAttention():
            query_key_value = [(module.query.weight, 1, 2**-0.5), (module.key_value.weight, 2, 2**-0.5)]
            return [*query_key_value, (module.output.weight, 1, 1.0)]
        case FeedForward():
            return [(module.inner.weight, 2 if module.gated else 1, 1.0), (module.output.weight, 1, 1.0)]
        case _:
            return []
