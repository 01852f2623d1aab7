"""What hidden states emit.

Four states of two columns. Two states share a centre: in one of them the columns rise together, in
the other they move against each other. Each ellipse has two standard deviations.
"""

import sys

import numpy as np

from tempering import GaussianHMM
from tempering.plots import plot_emissions

truth = GaussianHMM(n_components=4, covariance_type="full")
truth.startprob_, truth.transmat_ = np.full(4, 0.25), 0.02 + 0.92 * np.eye(4)
truth.means_ = np.array([[0.0, 0.0], [0.0, 0.0], [4.0, 0.0], [4.0, 3.0]])
truth.covars_ = np.array([[[1.0, c], [c, 1.0]] for c in (0.9, -0.9, 0.0, 0.5)])
X, _ = truth.sample(1500, random_state=0)

hmm = GaussianHMM(n_components=4, covariance_type="full", n_init=3, random_state=0).fit(X)
figure = plot_emissions(hmm, X)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "emissions.png", dpi=100, bbox_inches="tight")
