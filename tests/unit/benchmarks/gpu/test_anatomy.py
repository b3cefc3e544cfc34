"""Kernels are counted as what they are for."""

import pytest
import torch
from benchmarks.gpu.anatomy import CLASSES, class_of, own_kernels, sum_by_class, take_apart


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT", "matrix products"),
        ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16>", "matrix products"),
        ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>", "attention"),
        ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80", "attention"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma", "attention"),
        ("void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float>", "cross-entropy"),
        ("void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>", "optimiser"),
        ("Memcpy HtoD (Pinned -> Device)", "copies"),
        ("void at::native::elementwise_kernel<128, 4, direct_copy_kernel_cuda>", "copies"),
        ("void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add>", "norm and element-wise"),
        ("void at::native::vectorized_layer_norm_kernel<float>", "norm and element-wise"),
        ("something_else", "other"),
    ],
)
def test_a_kernel_is_known_by_its_name(kernel: str, expected: str) -> None:
    assert class_of(kernel) == expected


def test_own_kernels_are_known_by_their_module() -> None:
    own = own_kernels()
    assert own["_adam"] == "optimiser"
    assert own["_cross_entropy"] == "cross-entropy"
    assert "attention" in own.values()
    assert class_of("_adam") == "optimiser"


def test_sums_name_every_class_and_lose_nothing() -> None:
    sums = sum_by_class({"nvjet_a": 1.0, "nvjet_b": 2.0, "what": 0.5})
    assert tuple(sums) == CLASSES
    assert (sums["matrix products"], sums["other"], sum(sums.values())) == (3.0, 0.5, 3.5)


def test_a_product_is_found_in_a_step_of_products() -> None:
    left, right = torch.rand(256, 256), torch.rand(256, 256)
    found = take_apart(lambda: left @ right, steps=3, device=torch.device("cpu"))
    sums = found["by_class_ms"]
    assert sums["matrix products"] > 0.5 * found["kernels_ms"]
    assert found["longest"][0]["launches"] == 1
