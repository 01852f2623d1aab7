"""Features that images are sums of.

The paper's toy images are noisy sums of some of eight shapes. The first row has the true shapes,
the next three those that plain mean-field inference found from three starts, and the last those of
the default. `benchmarks/factorial_mixture.py` measures how often all eight are found.
"""

import sys
from pathlib import Path

from matplotlib.figure import Figure
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from tempering import FactorialMixture
from tempering.datasets import make_toy_images

images = make_toy_images(n_images=2000, seed=0)
plain = {"n_init": 1, "local": "mean-field", "local_restarts": 0}
known = {"noise_variance": 0.1, "feature_variance": 0.35}
found = {
    f"plain variational inference, seed {seed}": FactorialMixture(
        8, random_state=seed, **plain, **known
    )
    for seed in range(3)
}
found["nothing set"] = FactorialMixture(8, random_state=0)
features = {name: mixture.fit(images.X).features_ for name, mixture in found.items()}
rows = {"reference": images.features}
for name, own in features.items():
    order = linear_sum_assignment(cdist(images.features, own, "sqeuclidean"))[1]
    rows[name] = own[order]
figure = Figure(figsize=(7.2, 1.3 * len(rows)), layout="constrained")
for part, (name, own) in zip(figure.subfigures(len(rows), 1), rows.items()):
    part.suptitle(name, fontsize=9)
    for axis, image in zip(part.subplots(1, 8), own):
        axis.imshow(image.reshape(4, 4), cmap="RdBu_r", vmin=-own.max(), vmax=own.max())
        axis.set_axis_off()
picture = Path(sys.argv[1] if len(sys.argv) > 1 else "image-features.png")
figure.savefig(picture, dpi=120)
