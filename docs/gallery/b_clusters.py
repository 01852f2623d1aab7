"""Twenty-five clusters, fitted three times.

Round clusters on a grid, fitted with a mixture of 25 Gaussians: from k-means with two seeds, and by
the default, which searches for the best optimum.
"""

import sys

import numpy as np

from tempering import BayesianGaussianMixture
from tempering.plots import plot_mixtures

rng = np.random.default_rng(0)
centres = np.stack(np.meshgrid(range(5), range(5)), axis=-1).reshape(-1, 2)
X = np.repeat(centres, 400, axis=0) + 0.2 * rng.normal(size=(10_000, 2))

fits = {
    f"from k-means, seed {seed}": BayesianGaussianMixture(
        25, init_params="kmeans", n_init=1, random_state=seed
    ).fit(X)
    for seed in (0, 1)
}
fits["nothing set"] = BayesianGaussianMixture(25, random_state=0).fit(X)
figure = plot_mixtures(X, fits)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "clusters.png", dpi=100, bbox_inches="tight")
