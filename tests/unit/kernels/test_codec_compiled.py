"""The codec's kernels compile for GPUs that are not here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import json, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from tandem.kernels import codec

POINTERS = {"values_ptr": "*fp32", "residual_ptr": "*fp32", "unscale": "*fp32", "second_ptr": "*fp32",
    "codes_ptr": "*u8", "scales_ptr": "*i16", "remainder_ptr": "*fp32", "rotation_ptr": "*fp16", "code_ptr": "*u8",
    "level_ptr": "*fp16", "out_ptr": "*fp32", "blocks": "i32"}
CONSTANTS = {"UNSCALE_IS_TENSOR": True, "BINS_A_DEVIATION": 120.5, "GRID": 512.0, "SMALLEST": 1e-35, "SENT": 0.01,
    "BINS": 1024, "ROOT_GRID": 65536.0, "ROOT_BITS": 127 << 22, "ADDED": 0.0015, "RECEIVED": 1 / 256, "BITS": 4,
    "PARTS": 2, "B": 64, "R": 32, "ADD": True}

capability = int(sys.argv[1])
for kernel in (codec._encode, codec._decode):
    names = kernel.arg_names
    constants = {(place,): CONSTANTS[name] for place, name in enumerate(names) if name in CONSTANTS}
    source = ASTSource(
        fn=kernel,
        signature={name: POINTERS.get(name, "constexpr") for name in names},
        constexprs=constants,
        attrs={(place,): [["tt.divisibility", 16]] for place, name in enumerate(names) if name.endswith("_ptr")},
    )
    options = {"num_warps": 4, "enable_fp_fusion": False}
    built = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    ptx = built.asm["ptx"]
    print(json.dumps({
        "bytes": len(built.asm["cubin"]),
        "tensor_cores": "mma" in ptx,
        "fused": "fma.rn.f32" in ptx.replace("fma.rn.f32x2", ""),
        "local": ".local " in ptx,
        "wide_loads": "ld.global.v4.b32" in ptx,
    }))
"""


@pytest.mark.parametrize("capability", [80, 90])
def test_kernels_compile_to_wide_loads_and_tensor_cores(capability: int, tmp_path: Path) -> None:
    environment = {name: text for name, text in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(capability)],
        env=environment | {"TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kernels = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(kernels) == 2
    for kernel in kernels:
        assert kernel["bytes"] > 0
        assert kernel["tensor_cores"]
        assert kernel["wide_loads"]
        # A product and a sum that are rounded once would be other bits than a processor's.
        assert not kernel["fused"]
        assert not kernel["local"]
