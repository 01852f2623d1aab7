"""Digits as sums of parts.

The pixels of scikit-learn's digits are counts from 0 to 16. Poisson factorisation finds ten parts,
which are on top. Below are the first six images. Each is roughly the sum of the parts in its row,
and takes hardly anything of the others. The fit saw no labels.
"""

import sys

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from tempering import PoissonFactorization

X = load_digits().data
parts = PoissonFactorization(n_components=10, tol=1.0, random_state=0).fit(X)

images = X[:6]
terms = parts.transform(images)[:, :, None] * parts.components_
rows = np.concatenate([images[:, None], terms.sum(axis=1, keepdims=True), terms], axis=1)
orange = LinearSegmentedColormap.from_list("orange", ["white", "#c1571e", "#6b2d0c"])
figure = Figure(figsize=(8.4, 5.2), layout="constrained")
grid = figure.subplots(7, 12, width_ratios=[1.3, 1.3, *[1] * 10])
for axis in grid.flat:
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_color("0.8")
for axis in grid[0, :2]:
    axis.set_axis_off()
for axis, part in zip(grid[0, 2:], parts.components_):
    axis.imshow(part.reshape(8, 8), cmap=orange, vmin=0)
for axes, row in zip(grid[1:], rows):
    for axis, image, cmap in zip(axes, row, ["gray_r"] * 2 + [orange] * 10):
        axis.imshow(image.reshape(8, 8), cmap=cmap, vmin=0, vmax=16)
for axis, name in zip(grid[1, :2], ("image", "sum")):
    axis.set_title(name, fontsize=10)
grid[0, 6].set_title("the ten parts", fontsize=10, loc="left")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "parts.png", dpi=110)
