"""Facts become lines with a verdict and a cure."""

from collections import Counter
from collections.abc import Iterator, Sequence

from tandem.launch.doctor.examination import Examination
from tandem.launch.doctor.facts import Disk, HostFacts, Machine
from tandem.launch.doctor.judge_links import judge_links, judge_listening, judge_sums
from tandem.launch.doctor.judge_memory import judge_memory
from tandem.launch.doctor.line import Line
from tandem.launch.doctor.needs import Needs
from tandem.launch.doctor.quantity import bits_a_second, bytes_a_second, seconds, size

__all__ = ["judge"]

_CLOCK_S = 1.0
"""Clocks further apart make a muddle of logs."""
_SLOW_DISK = 10e6
"""Bytes a second."""


def judge(examination: Examination) -> tuple[Line, ...]:
    """Every line of an examination, hosts first."""
    machines = [host.machine for host in examination.hosts if host.machine is not None]
    ranks = sum(_ranks(host) for host in examination.hosts)
    lines: list[Line] = []
    for host in examination.hosts:
        lines += _judge_reach(host)
        if host.misread:
            lines.append(_judge_misread(host, ours=examination.tandem))
        if host.machine is not None:
            lines.append(_judge_versions(host.name, host.machine, machines, ours=examination.tandem))
            lines += _judge_clock(host)
            lines.append(_judge_gpus(host.name, host.machine, machines))
            lines += _judge_computer(host.name, host.machine)
            lines += judge_memory(host, examination.needs, ranks=ranks)
        lines += [] if host.disk is None else _judge_disk(host.name, host.disk, examination.needs)
        lines += _judge_nic(host, examination)
    lines += judge_links(examination)
    lines += judge_sums(examination)
    lines += judge_listening(examination)
    return tuple(lines)


def _ranks(host: HostFacts) -> int:
    return host.workers or (host.machine.usable_gpus if host.machine else 0) or 1


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
        cure = f"Set the clock of {host.name} by NTP, as with `timedatectl set-ntp true`."
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


def _judge_computer(name: str, machine: Machine) -> Iterator[Line]:
    free, whole = size(machine.available_bytes), size(machine.memory_bytes)
    yield Line(host=name, what="computer", value=f"{machine.cores} cores, {free} of {whole} memory free")


def _judge_disk(name: str, disk: Disk, needs: Needs) -> Iterator[Line]:
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
    if disk.write_bytes_per_s < _SLOW_DISK:
        lasting = seconds(needs.checkpoint_bytes / disk.write_bytes_per_s)
        cure = f"A checkpoint takes {lasting} to write on {name}: use a local disk by --dir."
        yield Line(host=name, what="disk speed", value=speed, verdict="poor", cure=cure)
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
