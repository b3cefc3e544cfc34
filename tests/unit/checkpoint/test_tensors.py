"""Tensors as safetensors: the same bits back, in the format that everybody reads."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from tandem.checkpoint import tensors as writer
from tandem.checkpoint.tensors import read_tensors, write_tensors
from tandem.errors import TandemError

TYPES = [
    torch.float64,
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.int32,
    torch.uint8,
]


def random_bits(dtype: torch.dtype, *, shape: tuple[int, ...] = (7, 5)) -> Tensor:
    """Any bits, not-a-numbers, infinities and negative zeros among them."""
    width = torch.empty(0, dtype=dtype).element_size()
    raw = torch.randint(0, 256, (*shape[:-1], shape[-1] * width), dtype=torch.uint8)
    return raw.view(dtype)


def bits(tensor: Tensor) -> bytes:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert (found[name].dtype, found[name].shape) == (tensor.dtype, tensor.shape)
        assert bits(found[name]) == bits(tensor)


def test_every_type_comes_back_bit_for_bit(tmp_path: Path) -> None:
    held = {str(dtype): random_bits(dtype) for dtype in TYPES}
    held |= {
        "flag": torch.tensor([True, False]),
        "scalar": torch.tensor(3.5),
        "count": torch.tensor(7),
        "empty": torch.empty(0, 4),
        "named ü.weight": random_bits(torch.bfloat16, shape=(3, 1)),
    }
    write_tensors(tmp_path / "x", held)
    assert_same(read_tensors(tmp_path / "x"), held)
    assert_same(load_file(tmp_path / "x"), held)


def test_views_are_written_as_what_they_show(tmp_path: Path) -> None:
    whole = torch.arange(24.0).reshape(4, 6)
    held = {"column": whole[:, 2], "turned": whole.T, "needs_gradient": whole.clone().requires_grad_()}
    write_tensors(tmp_path / "x", held)
    assert_same(read_tensors(tmp_path / "x"), {name: tensor.detach() for name, tensor in held.items()})


def test_the_bytes_are_those_of_the_safetensors_library(tmp_path: Path) -> None:
    held = {"b": random_bits(torch.float32), "a": random_bits(torch.bfloat16), "c": torch.tensor([1, 2])}
    write_tensors(tmp_path / "ours", held)
    save_file(held, tmp_path / "theirs", metadata={"format": "pt"})
    assert data_of(tmp_path / "ours") == data_of(tmp_path / "theirs")
    assert header_of(tmp_path / "ours") == header_of(tmp_path / "theirs")


def header_of(path: Path) -> object:
    raw = path.read_bytes()
    return json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])


def data_of(path: Path) -> bytes:
    raw = path.read_bytes()
    return raw[8 + int.from_bytes(raw[:8], "little") :]


def test_size_and_checksum_are_those_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_CHUNK_BYTES", 64)
    held = {"a": random_bits(torch.float32, shape=(33, 7)), "b": random_bits(torch.float16)}
    entry = write_tensors(tmp_path / "x", held)
    raw = (tmp_path / "x").read_bytes()
    assert (entry.bytes, entry.sha256) == (len(raw), sha256(raw).hexdigest())
    assert_same(read_tensors(tmp_path / "x"), held)


def test_the_same_tensors_give_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    held = {name: random_bits(torch.float32) for name in "cab"}
    first = write_tensors(tmp_path / "x", held)
    assert write_tensors(tmp_path / "y", dict(sorted(held.items()))) == first


def test_no_tensors_at_all_is_a_file_too(tmp_path: Path) -> None:
    write_tensors(tmp_path / "x", {})
    assert read_tensors(tmp_path / "x") == {}


def test_a_file_that_is_no_safetensors_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"not tensors")
    with pytest.raises(TandemError, match="cannot be read as safetensors"):
        read_tensors(tmp_path / "x")
    with pytest.raises(TandemError, match="cannot be read as safetensors"):
        read_tensors(tmp_path / "absent")
