"""What this machine is: versions, cores, memory, GPUs, network interfaces."""

import json
import os
import platform
import runpy
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from tandem import __version__
from tandem.errors import TandemError
from tandem.launch.doctor.facts import Gpu, Machine, Nic
from tandem.parallel.route import address_of, interface_of, source_of
from tandem.telemetry.nominal import NETWORK, nominal_bits_per_s

__all__ = ["describe_machine", "describe_nic"]

_DRIVER_S = 20
_TORCH_S = 60
# The best of some rounds, as a first one loads libraries and wakes the GPU; one after another, as they share power.
_TRY_TORCH = """
import json, time, torch
def rate(device, width, kind, synchronize):
    matrix = torch.zeros(width, width, device=device, dtype=kind)
    matrix.normal_()
    best = 0.0
    for _ in range(8):
        synchronize()
        begin = time.perf_counter()
        for _ in range(8):
            matrix @ matrix
        synchronize()
        best = max(best, 8 * 2 * width**3 / (time.perf_counter() - begin))
    return best
"""
_TRY_GPUS = """
found = torch.cuda.device_count() if torch.cuda.is_available() else 0
print(json.dumps([
    rate(f"cuda:{number}", 4096, torch.float16, lambda: torch.cuda.synchronize(number)) for number in range(found)
]))
"""
_TRY_CPU = """
print(json.dumps([rate("cpu", 768, torch.float32, lambda: None)]))
"""


def describe_machine(*, try_gpus: bool, try_cpu: bool = False) -> Machine:
    """All of it.

    With `try_gpus` torch also computes on each GPU, which takes seconds where there are any; with `try_cpu` on the
    processor, where there are none.
    """
    gpus, problem = _list_gpus()
    usable, speeds, processor = len(gpus), tuple[float, ...](), tuple[float, ...]()
    if gpus and try_gpus:
        speeds, problem = _try_torch(_TRY_GPUS)
        usable = len(speeds)
    elif try_cpu and not gpus:
        # One that fails fails again when gradients are summed, and is told of there.
        processor, _ = _try_torch(_TRY_CPU)
    total, available = _memory()
    return Machine(
        name=platform.node(),
        tandem=__version__,
        python=platform.python_version(),
        torch=_torch_version(),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=total,
        available_bytes=available,
        gpus=gpus,
        usable_gpus=usable,
        gpu_problem=problem,
        gpu_flops_per_s=speeds,
        cpu_flops_per_s=max(processor, default=0.0),
        ssh_address=([*os.environ.get("SSH_CONNECTION", "").split(), "", "", ""])[2],
    )


def describe_nic(*, name: str = "", towards: str) -> Nic:
    """The interface of that name, or the one that leads to another host."""
    address = address_of(name) if name else source_of(towards)
    if address is None:
        raise TandemError(f"it has no address on {name}: give --nic an interface that all hosts have.")
    found = name or interface_of(address) or ""
    return Nic(
        name=found,
        address=address,
        bits_per_s=nominal_bits_per_s(found),
        mtu=_number(NETWORK / found / "mtu"),
    )


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0


def _torch_version() -> str:
    """With its build, as in 2.13.0+cpu, which the package's own data may lack; torch itself takes seconds to load."""
    found = find_spec("torch")
    if found is None or found.origin is None:
        return ""
    return str(runpy.run_path(str(Path(found.origin).with_name("version.py")))["__version__"])


def _memory() -> tuple[int, int]:
    """All and available bytes; a container may have less than its machine."""
    rows = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    held = {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows}
    total, available = held["MemTotal"], held["MemAvailable"]
    limit = _number(Path("/sys/fs/cgroup/memory.max"))
    if 0 < limit < total:
        used = _number(Path("/sys/fs/cgroup/memory.current"))
        return limit, min(available, max(0, limit - used))
    return total, available


def _list_gpus() -> tuple[tuple[Gpu, ...], str]:
    """The GPUs that the driver knows, and what is wrong with it."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return (), ""
    words = [program, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits"]
    try:
        result = subprocess.run(words, capture_output=True, text=True, timeout=_DRIVER_S, check=True)  # noqa: S603
        rows = [line.rsplit(", ", 2) for line in result.stdout.splitlines() if line.strip()]
        gpus = tuple(Gpu(name=row[0], memory_bytes=int(row[1]) * 2**20, driver=row[2]) for row in rows)
    except subprocess.CalledProcessError as error:
        # Programs of the driver without a GPU are nothing to complain about.
        said = (error.stdout + error.stderr).strip().splitlines()
        return (), "" if "No devices" in "".join(said) else (said or ["nvidia-smi fails"])[-1]
    except (subprocess.TimeoutExpired, ValueError, IndexError) as error:
        return (), f"nvidia-smi does not answer ({type(error).__name__})"
    return gpus, ""


def _try_torch(program: str) -> tuple[tuple[float, ...], str]:
    """Operations a second of what torch computes on, in a process of its own: a broken driver may kill it."""
    words = [sys.executable, "-P", "-c", _TRY_TORCH + program]
    try:
        result = subprocess.run(words, capture_output=True, text=True, timeout=_TORCH_S, check=True)  # noqa: S603
        return tuple(map(float, json.loads(result.stdout.splitlines()[-1]))), ""
    except subprocess.CalledProcessError as error:
        return (), (error.stderr.strip().splitlines() or [f"exit status {error.returncode}"])[-1]
    except (subprocess.TimeoutExpired, ValueError, IndexError) as error:
        return (), f"torch does not answer ({type(error).__name__})"
