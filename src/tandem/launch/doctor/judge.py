"""Facts become lines with a verdict and a cure."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from tandem.launch.doctor.costs import added_by_disk, added_by_gpu
from tandem.launch.doctor.examination import Examination
from tandem.launch.doctor.facts import Disk, HostFacts, Machine
from tandem.launch.doctor.judge_links import judge_links, judge_listening, judge_sums
from tandem.launch.doctor.judge_memory import judge_memory
from tandem.launch.doctor.judge_steps import judge_steps
from tandem.launch.doctor.line import Line
from tandem.launch.doctor.needs import Needs
from tandem.launch.doctor.quantity import bits_a_second, bytes_a_second, operations_a_second, seconds, size
from tandem.launch.doctor.steps import predict_steps

__all__ = ["judge"]

_CLOCK_S = 0.1
"""Clocks that are kept by NTP are nearer to each other."""
_SLOW_DISK = 10e6
"""Bytes a second."""
_TWIN_DISK, _TWIN_GPU = 0.25, 0.85
"""Of the speed of the best one among the hosts: disks vary from one look to the next, GPUs of a kind hardly."""


def judge(examination: Examination) -> tuple[Line, ...]:
    """Every line of an examination, hosts first."""
    machines = [host.machine for host in examination.hosts if host.machine is not None]
    ranks = sum(host.ranks for host in examination.hosts)
    lines: list[Line] = []
    for host in examination.hosts:
        lines += _judge_reach(host)
        if host.misread:
            lines.append(_judge_misread(host, ours=examination.tandem))
        if host.machine is not None:
            lines.append(_judge_versions(host.name, host.machine, machines, ours=examination.tandem))
            lines += _judge_clock(host)
            lines.append(_judge_gpus(host.name, host.machine, machines))
            lines += _judge_gpu_speed(host.name, host.machine, machines, needs=examination.needs, ranks=ranks)
            lines += _judge_computer(host.name, host.machine)
            lines += judge_memory(host, examination.needs, ranks=ranks)
        lines += [] if host.disk is None else _judge_disk(host.name, host.disk, examination)
        lines += _judge_nic(host, examination)
    lines += judge_links(examination)
    lines += judge_sums(examination)
    lines += judge_steps(examination, predict_steps(examination))
    lines += judge_listening(examination)
    return tuple(lines)


def _judge_reach(host: HostFacts) -> Iterator[Line]:
    if host.reached_s > 0:
        yield Line(host=host.name, what="ssh", value=f"answers after {seconds(host.reached_s)}")
    if host.problem:
        value = "could not be completed" if host.reached_s > 0 else "not possible"
        yield Line(host=host.name, what="examination", value=value, verdict="broken", cure=host.problem)


def _judge_versions(name: str, machine: Machine, machines: Sequence[Machine], *, ours: str) -> Line:
    torch = machine.torch or "none"
    value = f"Tandem {machine.tandem}, torch {torch}, Python {machine.python}"
    usual_torch = _usual([each.torch for each in machines])
    usual_python = _usual([_minor(each.python) for each in machines])
    if machine.tandem != ours:
        cure = f"{name} has Tandem {machine.tandem}, this machine {ours}: install the same version on both."
        return Line(host=name, what="versions", value=value, verdict="broken", cure=cure)
    # With its build: training refuses two of them, since each brings an NCCL of its own.
    if machine.torch != usual_torch or not machine.torch:
        cure = (
            f"{name} has torch {torch}, the others {usual_torch or 'none'}: install the same version on all."
        )
        return Line(host=name, what="versions", value=value, verdict="broken", cure=cure)
    if _minor(machine.python) != usual_python:
        cure = f"{name} has Python {machine.python}, the others {usual_python}: use the same on all."
        return Line(host=name, what="versions", value=value, verdict="poor", cure=cure)
    return Line(host=name, what="versions", value=value)


def _judge_misread(host: HostFacts, *, ours: str) -> Line:
    cure = f"What Tandem {host.misread} on {host.name} says is not what {ours} here expects: "
    cure += "install the same version on both."
    return Line(host=host.name, what="versions", value=f"Tandem {host.misread}", verdict="broken", cure=cure)


def _usual(held: Sequence[str]) -> str:
    return Counter(held).most_common(1)[0][0]


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _judge_clock(host: HostFacts) -> Iterator[Line]:
    clock = host.clock
    if clock is None:
        return
    value = f"{clock.offset_s * 1e3:+.1f} ms ± {clock.uncertainty_s * 1e3:.1f} ms against this machine"
    if abs(clock.offset_s) - clock.uncertainty_s > _CLOCK_S:
        cure = (
            f"Set the clock of {host.name} by NTP, as with `timedatectl set-ntp true`: it adds nothing to a step, but "
            f"what {host.name} logs stands {seconds(abs(clock.offset_s))} beside what the others log."
        )
        yield Line(host=host.name, what="clock", value=value, verdict="poor", cure=cure)
    else:
        yield Line(host=host.name, what="clock", value=value)


def _judge_gpus(name: str, machine: Machine, machines: Sequence[Machine]) -> Line:
    if not machine.gpus:
        if machine.gpu_problem:
            cure = f"Mend the driver of {name}: {machine.gpu_problem}."
            return Line(host=name, what="GPUs", value="the driver fails", verdict="broken", cure=cure)
        if any(each.gpus for each in machines):
            cure = f"Others have GPUs: leave {name} out, or train on the CPUs of all."
            return Line(host=name, what="GPUs", value="no GPU: CPU", verdict="poor", cure=cure)
        return Line(host=name, what="GPUs", value="no GPU: CPU")
    first = machine.gpus[0]
    value = f"{len(machine.gpus)} × {first.name}, {size(first.memory_bytes)}, driver {first.driver}"
    if machine.usable_gpus < len(machine.gpus):
        why = machine.gpu_problem or "CUDA is not there for it"
        cure = f"torch on {name} can use {machine.usable_gpus} of {len(machine.gpus)} GPUs ({why}): install a torch "
        cure += "build that fits the driver, and check CUDA_VISIBLE_DEVICES."
        return Line(host=name, what="GPUs", value=value, verdict="broken", cure=cure)
    usual = _usual([gpu.name for each in machines for gpu in each.gpus])
    if strange := next((gpu.name for gpu in machine.gpus if gpu.name != usual), ""):
        cure = f"{name} has {strange}, most others {usual}: the slowest sets the pace, so use one kind."
        return Line(host=name, what="GPUs", value=value, verdict="poor", cure=cure)
    return Line(host=name, what="GPUs", value=value)


def _judge_gpu_speed(
    name: str, machine: Machine, machines: Sequence[Machine], *, needs: Needs, ranks: int
) -> Iterator[Line]:
    """Of one that is slower than it could be, as one that is hot, held down or shared; all ranks wait for it."""
    if not machine.gpu_flops_per_s:
        return
    slow = min(machine.gpu_flops_per_s)
    fast = max(max(each.gpu_flops_per_s, default=0.0) for each in machines)
    value = f"{operations_a_second(slow)} in float16"
    if len(machine.gpu_flops_per_s) > 1:
        value = f"{operations_a_second(max(machine.gpu_flops_per_s))}, the slowest {value}"
    if slow >= _TWIN_GPU * fast:
        yield Line(host=name, what="GPU speed", value=value)
        return
    step_s, said = added_by_gpu(needs, ranks=ranks, slow=slow, fast=fast)
    number = machine.gpu_flops_per_s.index(slow)
    cure = (
        f"GPU {number} of {name} computes {operations_a_second(slow)}, the fastest here "
        f"{operations_a_second(fast)}; {said}. Look at its clocks and heat (`nvidia-smi -q -d PERFORMANCE`), and who "
        "else uses it, or leave it out."
    )
    yield Line(host=name, what="GPU speed", value=value, verdict="poor", cure=cure, step_s=step_s)


def _judge_computer(name: str, machine: Machine) -> Iterator[Line]:
    free, whole = size(machine.available_bytes), size(machine.memory_bytes)
    yield Line(host=name, what="computer", value=f"{machine.cores} cores, {free} of {whole} memory free")


def _judge_disk(name: str, disk: Disk, examination: Examination) -> Iterator[Line]:
    needs = examination.needs
    value = f"{size(disk.free_bytes)} free in {disk.folder}"
    wanted = f"{needs.of_what} needs {size(needs.disk_bytes)} for data and checkpoints"
    if disk.problem:
        cure = f"Cannot write in {disk.folder} on {name} ({disk.problem}): make room or rights there, or give --dir."
        yield Line(host=name, what="disk", value=value, verdict="broken", cure=cure)
        return
    if disk.free_bytes < needs.checkpoint_bytes:
        cure = f"{name} has no room for one checkpoint, and {wanted}: make room, or give another --dir."
        yield Line(host=name, what="disk", value=value, verdict="broken", cure=cure)
    elif disk.free_bytes < needs.disk_bytes:
        cure = f"{wanted}: make room on {name}, or lower checkpoint.keep_last and keep_best."
        yield Line(host=name, what="disk", value=value, verdict="poor", cure=cure)
    else:
        yield Line(host=name, what="disk", value=value)
    speed = f"writes {bytes_a_second(disk.write_bytes_per_s)}"
    speeds = [host.disk.write_bytes_per_s for host in examination.hosts if host.disk]
    best = max((each for each in speeds if not math.isnan(each)), default=math.nan)
    if disk.write_bytes_per_s < max(_SLOW_DISK, _TWIN_DISK * best):
        step_s, said = added_by_disk(needs, slow=disk.write_bytes_per_s, fast=max(best, _SLOW_DISK))
        cure = (
            f"The disk of {name} is slow; {said}. Use a local disk by --dir, and look who else writes to it."
        )
        yield Line(host=name, what="disk speed", value=speed, verdict="poor", cure=cure, step_s=step_s)
    else:
        yield Line(host=name, what="disk speed", value=speed)


def _judge_nic(host: HostFacts, examination: Examination) -> Iterator[Line]:
    nic = host.nic
    if nic is None:
        return
    rates = [
        link.bytes_per_s
        for link in examination.links
        if host.name in (link.sender, link.receiver) and link.bytes_per_s > 0
    ]
    # What the card agreed on with the switch is not what the way to the other hosts carries.
    speeds = [f"delivers {bits_a_second(8 * min(rates))}"] if rates else []
    speeds += [f"nominal {bits_a_second(nic.bits_per_s)}"] if nic.bits_per_s else []
    named = f"{nic.name or 'no interface'} {nic.address}"
    value = ", ".join([named, *speeds, f"packets of {nic.mtu} bytes"])
    usual = Counter(each.nic.mtu for each in examination.hosts if each.nic).most_common(1)[0][0]
    if nic.mtu == usual:
        yield Line(host=host.name, what="network", value=value)
    else:
        cure = f"Packets of {host.name} are of {nic.mtu} bytes, of the others {usual}: set one MTU on {nic.name}."
        yield Line(host=host.name, what="network", value=value, verdict="poor", cure=cure)
