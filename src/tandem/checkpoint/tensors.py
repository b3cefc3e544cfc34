"""Tensors as a safetensors file: streamed out with a running checksum, and read back memory-mapped."""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from tandem.artefact import FileEntry, JsonValue
from tandem.errors import TandemError
from tandem.files import require_regular

__all__ = ["read_tensors", "write_tensors"]

_TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_CHUNK_BYTES = 1 << 25
_ALIGNED = 8


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> FileEntry:
    """Write tensors of the host to a file, and return its size and checksum.

    No second copy of them is made, and other threads run on: hashing and writing let go of the interpreter.
    """
    digest, size = sha256(), 0
    with path.open("wb") as file:
        for chunk in _chunks(tensors):
            digest.update(chunk)
            file.write(chunk)
            size += len(chunk)
    return FileEntry(bytes=size, sha256=digest.hexdigest())


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Map the tensors of a file into memory: bytes are read when they are used."""
    try:
        require_regular(path, links=True)
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise TandemError(f"{path} cannot be read as safetensors ({error}): copy it again.") from error


def _chunks(tensors: Mapping[str, Tensor]) -> Iterator[bytes | memoryview]:
    # The widest numbers first, so that each tensor lies where its own width may be mapped.
    ordered = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    yield _header({name: tensors[name] for name in ordered})
    for name in ordered:
        raw = tensors[name].detach().contiguous().reshape(-1).view(torch.uint8).numpy().data
        for start in range(0, len(raw), _CHUNK_BYTES):
            yield raw[start : start + _CHUNK_BYTES]


def _header(tensors: Mapping[str, Tensor]) -> bytes:
    described: dict[str, JsonValue] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, tensor in tensors.items():
        start, end = end, end + tensor.numel() * tensor.element_size()
        described[name] = {
            "dtype": _TYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(described, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNED)
    return len(text).to_bytes(8, "little") + text
