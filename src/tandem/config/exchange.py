"""The exchange section: how ranks on several hosts exchange their gradients."""

from typing import Annotated, Literal

from pydantic import Field

from tandem.config.section import Section

__all__ = ["ExchangeSection"]


class ExchangeSection(Section):
    """How ranks on several hosts exchange their gradients; on one host they always do so exactly."""

    mode: Literal["auto", "exact", "bf16", "packed"] = "exact"
    """exact sums in fp32, bf16 sends half of the bytes, packed an eighth; auto measures which of them the link needs,
    and takes the most exact one that hides behind computing."""

    exact_steps: Annotated[int, Field(ge=0)] = 50
    """First steps that are exact in every mode, while Adam's second moments are still rough."""

    check_steps: Annotated[int, Field(ge=1)] | None = 100
    """Steps after which encoded gradients are held against the exact ones, by sketches; null is never."""

    most_error: Annotated[float, Field(gt=0, le=10)] = 0.5
    """How far encoded gradients may lie from the exact ones, as a share of these; beyond that at two checks in a row,
    the run goes on in the next more exact mode."""
