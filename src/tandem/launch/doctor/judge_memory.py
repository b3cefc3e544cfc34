"""Whether the batches of a recipe fit into the memory of a host."""

from collections.abc import Iterator

from tandem.estimate.memory import SPARE, RankMemory
from tandem.launch.doctor.facts import HostFacts, Machine
from tandem.launch.doctor.line import Line
from tandem.launch.doctor.needs import Needs
from tandem.launch.doctor.quantity import size

__all__ = ["judge_memory"]


def judge_memory(host: HostFacts, needs: Needs, *, ranks: int) -> Iterator[Line]:
    """A line for a host's GPUs, or its memory where it has none; none without a recipe."""
    if host.machine is None or needs.memory is None:
        return
    fused, plain = needs.memory
    has_gpu = host.machine.usable_gpus > 0
    memory = fused if has_gpu else plain
    room = _gpu_room(host.machine, memory) if has_gpu else _room(host, memory)
    largest = memory.largest_tokens(room)
    wanted = max(needs.longest_tokens, -(-needs.update_tokens // ranks))
    if largest < needs.longest_tokens:
        tokens, verdict = needs.longest_tokens, "does not fit"
    else:
        tokens = min(wanted, largest)
        verdict = "fits at once" if wanted <= largest else "fits in pieces"
    needed = memory.state + memory.pass_bytes(source_tokens=tokens, target_tokens=tokens)
    place = "a GPU" if has_gpu else "a worker's memory"
    value = f"{tokens:,} tokens need {size(needed)}, {place} has {size(room + memory.state)}: {verdict}"
    if largest < needs.longest_tokens:
        cure = (
            f"A sentence of {tokens:,} pieces does not fit on {host.name}: take a smaller model or max_pieces"
        )
        cure += "." if has_gpu else ", or fewer workers there."
        yield Line(host=host.name, what="worst batch", value=value, verdict="broken", cure=cure)
    else:
        yield Line(host=host.name, what="worst batch", value=value)


def _gpu_room(machine: Machine, memory: RankMemory) -> float:
    return memory.room_bytes(min(gpu.memory_bytes for gpu in machine.gpus))


def _room(host: HostFacts, memory: RankMemory) -> float:
    """What the free memory of a host leaves to the pass of each worker."""
    assert host.machine is not None
    return host.machine.available_bytes * (1 - SPARE) / (host.workers or 1) - memory.state
