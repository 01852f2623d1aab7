"""States of a sequence.

Two columns whose mean or noise changes now and then. A hidden Markov model finds three states, and
where each begins and ends.
"""

import sys

import numpy as np

from tempering import GaussianHMM
from tempering.plots import plot_state_sequence

rng = np.random.default_rng(0)
states = np.repeat(rng.permutation(np.tile([0, 1, 2], 4)), 40)
means, noise = np.array([[0.0, 0.0], [0.0, 3.0], [2.0, 0.0]]), np.array([0.4, 1.0, 0.4])
X = means[states] + noise[states, None] * rng.normal(size=(len(states), 2))

hmm = GaussianHMM(n_components=3, random_state=0).fit(X)
figure = plot_state_sequence(hmm, X, names=["first", "second"])
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "states.png", dpi=100, bbox_inches="tight")
