"""Fits on more than the cores of one machine: a GPU (JAX), or a cluster (Dask)."""

from tempering.scale.dask_executor import DaskExecutor
from tempering.scale.dask_source import DaskSource

__all__ = ["DaskExecutor", "DaskSource"]
