"""Pictures with matplotlib, which the extra ``tempering[plot]`` installs.

Public names load on first use: whoever only asks whether drawing is possible loads no estimator.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = [
    "plot_document_temperatures",
    "plot_elbo",
    "plot_mixtures",
    "plot_temperature",
    "plot_temperature_path",
    "plot_topics",
]

if TYPE_CHECKING:
    from tempering.plots.mixtures import plot_mixtures
    from tempering.plots.temperature_path import plot_temperature_path
    from tempering.plots.topics import (
        plot_document_temperatures,
        plot_elbo,
        plot_temperature,
        plot_topics,
    )


def __getattr__(name: str) -> Any:
    if name in __all__:
        rooms = {"plot_mixtures": "mixtures", "plot_temperature_path": "temperature_path"}
        room = import_module(f"tempering.plots.{rooms.get(name, 'topics')}")
        return getattr(room, name)
    raise AttributeError(f"module 'tempering.plots' has no attribute {name!r}")
