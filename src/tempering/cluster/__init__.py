"""Fits on the machines of a cluster (Dask)."""

from importlib.util import find_spec

if find_spec("distributed") is None:
    raise ImportError("a fit on a cluster needs Dask: pip install 'tempering[distributed]'.")

from tempering.cluster.dask_executor import DaskExecutor
from tempering.cluster.dask_source import DaskSource

__all__ = ["DaskExecutor", "DaskSource"]
