"""Kinds of handwritten digits.

A mixture of Bernoulli distributions over the black and white pixels of scikit-learn's digits. Of
thirty components, those in use are drawn by their means, largest first. The fit saw no labels.
"""

import sys

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from tempering import BernoulliMixture

X = (load_digits().data > 7).astype(int)
mixture = BernoulliMixture(30, tempering="annealing", n_init=3, random_state=0).fit(X)

used = [k for k in np.argsort(-mixture.weights_) if mixture.weights_[k] * len(X) > 1]
rows = -(-len(used) // 8)
figure = Figure(figsize=(6.4, 0.8 * rows), layout="constrained")
axes = figure.subplots(rows, 8, squeeze=False).ravel()
for axis in axes:
    axis.set_axis_off()
for axis, k in zip(axes, used):
    axis.imshow(mixture.probabilities_[k].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "digits.png", dpi=120)
