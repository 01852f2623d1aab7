"""Factors of few columns.

Two factors, each of which moves four of twelve columns. Sparse loadings switch off each loading
that the data do not need, and rotate the factors to make this possible.
"""

import sys

import numpy as np

from tempering import BayesianFactorAnalysis
from tempering.plots import plot_loadings

rng = np.random.default_rng(0)
loadings = np.zeros((2, 12))
loadings[0, :4], loadings[1, 3:7] = [1.5, -1.2, 1.0, 0.8], [0.9, 1.3, -1.1, 1.4]
X = rng.normal(size=(200, 2)) @ loadings + rng.normal(size=(200, 12))

factors = BayesianFactorAnalysis(n_components=2, loadings="sparse").fit(X)
figure = plot_loadings(factors)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "sparse.png", dpi=100, bbox_inches="tight")
