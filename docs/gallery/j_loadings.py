"""What the factors of a table are.

Measurements of 178 wines, in units of their standard deviations. Factor analysis keeps the factors
that the data need; each row shows which columns vary together.
"""

import sys

from sklearn.datasets import load_wine

from tempering import BayesianFactorAnalysis
from tempering.plots import plot_loadings

wine = load_wine()
X = (wine.data - wine.data.mean(axis=0)) / wine.data.std(axis=0)
factors = BayesianFactorAnalysis().fit(X)
figure = plot_loadings(factors, names=wine.feature_names)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "loadings.png", dpi=100, bbox_inches="tight")
