"""Moves between hidden states.

Students learn: they move from not knowing to knowing, and hardly ever back. A hidden Markov model
finds these moves from right and wrong answers alone.
"""

import sys

import numpy as np

from tempering import CategoricalHMM
from tempering.plots import plot_transition_matrix

truth = CategoricalHMM(n_components=2)
truth.startprob_ = np.array([0.7, 0.3])
truth.transmat_ = np.array([[0.9, 0.1], [0.0, 1.0]])
truth.emissionprob_ = np.array([[0.75, 0.25], [0.05, 0.95]])
rng = np.random.RandomState(0)
X = np.concatenate([truth.sample(20, random_state=rng)[0] for _ in range(100)])

hmm = CategoricalHMM(n_components=2, random_state=0).fit(X, [20] * 100)
figure = plot_transition_matrix(hmm)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "moves.png", dpi=100, bbox_inches="tight")
