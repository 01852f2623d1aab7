"""A temperature that finds its own schedule.

Sixteen clusters, fitted with `AdaptiveTempering()`. The temperature is held while the energy still
rises (shaded), because components are separating. The first peak of the heat capacity is where the
data begin to outweigh the prior.
"""

import sys

import numpy as np

from tempering import AdaptiveTempering, Mixture, fit
from tempering.families import Dirichlet, IsotropicGaussian
from tempering.plots import plot_temperature_path

rng = np.random.default_rng(0)
centres = np.array([(i, j) for i in range(4) for j in range(4)], float)
data = centres[rng.integers(16, size=800)] + 0.1 * rng.normal(size=(800, 2))
likelihood = IsotropicGaussian(2, 0.01)
prior = likelihood.conjugate.natural(np.zeros(2), 10.0)
model = Mixture(likelihood, Dirichlet(16), np.ones(16), prior)

result = fit(model, data, temperature=AdaptiveTempering(), progress=False)
figure = plot_temperature_path(result.history)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "path.png", dpi=100, bbox_inches="tight")
