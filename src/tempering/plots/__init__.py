"""Pictures with matplotlib, which the extra ``tempering[plot]`` installs."""

from tempering.plots.hidden import (
    plot_emissions,
    plot_loadings,
    plot_mixtures,
    plot_state_sequence,
    plot_transition_matrix,
)
from tempering.plots.searches import plot_trail
from tempering.plots.topics import plot_temperature, plot_temperature_path, plot_topics

__all__ = [
    "plot_emissions",
    "plot_loadings",
    "plot_mixtures",
    "plot_state_sequence",
    "plot_temperature",
    "plot_temperature_path",
    "plot_topics",
    "plot_trail",
    "plot_transition_matrix",
]
