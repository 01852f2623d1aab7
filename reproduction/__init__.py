"""Each figure and claim of the paper as a runnable experiment.

``EXPERIMENTS["toy"]`` is an :class:`~reproduction.experiment.Experiment`; it loads on
first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reproduction.experiment import Experiment

#: In the order of the paper, with what each shows, in a line.
SUMMARIES = {
    "landscape": "Figure 1: the annealed ELBO of two Gaussians.",
    "lda": "Figure 2: topic models, held-out score by documents.",
    "lda-topics": "Does tempering gain more with more topics?",
    "lda-sensitivity": "Topic models: priors, start temperature, schedule.",
    "toy": "Figures 3 and 4: factorial mixture of toy images.",
    "faces": "Figure 3: factorial mixture of faces.",
    "temperatures": "The temperatures learned, also of documents.",
    "partition": "log C(T): Monte Carlo, closed form, quadrature, bounds.",
    "prior": "Tempering the joint, or the likelihood only.",
}


class Experiments(Mapping[str, "Experiment"]):
    """The experiments by name; each loads when it is asked for."""

    def __getitem__(self, name: str) -> Experiment:
        if name not in SUMMARIES:
            raise KeyError(name)
        return import_module(f"reproduction.{name.replace('-', '_')}").EXPERIMENT

    def __iter__(self) -> Iterator[str]:
        return iter(SUMMARIES)

    def __len__(self) -> int:
        return len(SUMMARIES)


EXPERIMENTS = Experiments()
