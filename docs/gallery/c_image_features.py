"""Features that images are sums of.

The paper's toy images are noisy sums of some of eight shapes. The first row has the true shapes,
the next three those that plain mean-field inference found from three starts, and the last those of
the default. `benchmarks/factorial_mixture.py` measures how often all eight are found.
"""

import sys
from pathlib import Path

from tempering import FactorialMixture
from tempering.datasets import make_toy_images
from tempering.plots.features import draw_features

images = make_toy_images(n_images=2000, seed=0)
plain = {"tempering": None, "local": "mean-field", "local_restarts": 0, "moves": False}
known = {"noise_variance": 0.1, "feature_variance": 0.35}
found = {
    f"plain variational inference, seed {seed}": FactorialMixture(
        8, random_state=seed, **plain, **known
    )
    for seed in range(3)
}
found["nothing set"] = FactorialMixture(8, random_state=0)
features = {name: mixture.fit(images.X).features_ for name, mixture in found.items()}
picture = Path(sys.argv[1] if len(sys.argv) > 1 else "image-features.png")
draw_features(picture, features, (4, 4), reference=images.features, columns=8)
