"""The telemetry section: how closely a run is watched while it goes on."""

from typing import Annotated

from pydantic import Field

from tandem.config.section import Section

__all__ = ["TelemetrySection"]


class TelemetrySection(Section):
    """How closely a run is watched while it goes on; none of it changes what is learnt."""

    sample_seconds: Annotated[float, Field(ge=0.1)] | None = 1.0
    """Seconds from one look at each host's GPUs, cores, disk and network to the next; null for none."""

    probe_steps: Annotated[int, Field(ge=10)] | None = 500
    """Steps from one that is also done without exchanging gradients, to see what that costs, to the next such step;
    some early ones come besides. Null for none."""

    report: bool = True
    """Keep the report in the run's folder up to date while the run goes on, in a process of low priority."""

    price_per_host_hour: Annotated[float, Field(ge=0)] | None = None
    """What an hour of one host costs, in any currency: the report then says what the run cost."""
