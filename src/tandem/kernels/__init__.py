"""Triton kernels for NVIDIA GPUs and the functions that launch them; nothing here knows of models or autograd."""
