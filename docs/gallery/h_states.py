"""States of a sequence.

By how much a share changed each day, from 2004 to 2008. A hidden Markov model finds calm and stormy
times, which differ in their variances alone, and when each began and ended.
"""

import sys

import numpy as np
from matplotlib.cbook import get_sample_data

from tempering import GaussianHMM
from tempering.plots import plot_state_sequence

prices = get_sample_data("goog.npz")["price_data"]["adj_close"]  # Google; matplotlib ships it
change = 100 * np.diff(np.log(prices))[:, None]

hmm = GaussianHMM(n_components=2, random_state=0).fit(change)
figure = plot_state_sequence(hmm, change, names=["change, %"])
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "states.png", dpi=100, bbox_inches="tight")
