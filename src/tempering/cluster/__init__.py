"""Fits on the machines of a cluster (Dask)."""

from tempering.cluster.dask_executor import DaskExecutor
from tempering.cluster.dask_source import DaskSource

__all__ = ["DaskExecutor", "DaskSource"]
