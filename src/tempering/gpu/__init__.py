"""Fits on a GPU, or whatever device JAX finds."""

from tempering.gpu.device_lda import fit_on_device

__all__ = ["fit_on_device"]
