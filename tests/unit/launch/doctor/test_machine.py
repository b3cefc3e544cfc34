import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from tandem import __version__
from tandem.errors import TandemError
from tandem.launch.doctor.facts import Gpu, Machine
from tandem.launch.doctor.machine import describe_machine, describe_nic


def driver(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = folder / "nvidia-smi"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_a_machine_knows_its_versions_cores_and_memory() -> None:
    machine = describe_machine(try_gpus=False)
    assert machine.tandem == __version__
    assert machine.torch == torch.__version__
    assert machine.cores >= 1
    assert 0 < machine.available_bytes <= machine.memory_bytes


def test_gpus_are_told_as_the_driver_lists_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver(tmp_path, 'echo "NVIDIA L4, 23034, 570.86.15"; echo "NVIDIA L4, 23034, 570.86.15"', monkeypatch)
    machine = describe_machine(try_gpus=False)
    assert machine.gpus == (Gpu(name="NVIDIA L4", memory_bytes=23034 * 2**20, driver="570.86.15"),) * 2
    assert (machine.usable_gpus, machine.gpu_problem) == (2, "")


def test_a_driver_that_fails_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver(tmp_path, 'echo "Driver/library version mismatch"; exit 18', monkeypatch)
    machine = describe_machine(try_gpus=True)
    assert (machine.gpus, machine.gpu_problem) == ((), "Driver/library version mismatch")


def test_a_driver_without_a_gpu_is_nothing_to_complain_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver(tmp_path, 'echo "No devices were found"; exit 6', monkeypatch)
    machine = describe_machine(try_gpus=True)
    assert (machine.gpus, machine.gpu_problem) == ((), "")


def test_a_file_of_the_folder_is_not_taken_for_a_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    (libraries / "torch.py").write_text("class cuda:\n    is_available = staticmethod(lambda: False)\n")
    (tmp_path / "json.py").write_text("raise RuntimeError('not this one')\n")
    monkeypatch.setenv("PYTHONPATH", str(libraries))
    monkeypatch.chdir(tmp_path)
    driver(tmp_path, 'echo "NVIDIA L4, 23034, 570.86.15"', monkeypatch)
    machine = describe_machine(try_gpus=True)
    assert (machine.usable_gpus, machine.gpu_problem) == (0, "")


TORCH = """
float16 = None
class cuda:
    is_available = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 2)
    synchronize = staticmethod(lambda number: None)
class Matrix:
    def normal_(self): pass
    def __matmul__(self, other): pass
def zeros(*shape, device, dtype): return Matrix()
"""


def test_each_gpu_that_torch_computes_on_has_a_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text(TORCH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    driver(tmp_path, 'echo "NVIDIA L4, 23034, 570.86.15"; echo "NVIDIA L4, 23034, 570.86.15"', monkeypatch)
    machine = describe_machine(try_gpus=True)
    assert (machine.usable_gpus, machine.gpu_problem) == (2, "")
    assert len(machine.gpu_flops_per_s) == 2
    assert min(machine.gpu_flops_per_s) > 0
    assert Machine.from_json(json.loads(json.dumps(asdict(machine)))) == machine


def test_the_interface_towards_an_address_is_found() -> None:
    nic = describe_nic(towards="127.0.0.1")
    assert (nic.name, nic.address) == ("lo", "127.0.0.1")
    assert nic.mtu > 0


def test_an_interface_without_an_address_is_an_error() -> None:
    with pytest.raises(TandemError, match="no address on nowhere0"):
        describe_nic(name="nowhere0", towards="127.0.0.1")
