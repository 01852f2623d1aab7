"""Many data: stochastic inference from a fresh start, and from a search on a sample.

    python benchmarks/search_on_a_sample.py --rows 200000 --sample 5000 --seeds 5

Drawn Gaussian clusters (known variance, unequal sizes). It reports the ELBO below the best, in
nats a row, and CPU seconds, those of the search included.
"""

import argparse
import time
import warnings

import numpy as np

from tempering import Annealing, Mixture, families, fit, search


def problem(n: int, k: int, seed: int) -> tuple[Mixture, np.ndarray]:
    rng = np.random.default_rng(seed)
    centres, weights = 1.2 * rng.normal(size=(k, 5)), rng.dirichlet(np.full(k, 2.0))
    data = centres[rng.choice(k, size=n, p=weights)] + 0.3 * rng.normal(size=(n, 5))
    likelihood = families.IsotropicGaussian(5, 0.09)
    prior = likelihood.conjugate.natural(np.zeros(5), 10.0)
    return Mixture(likelihood, families.Dirichlet(k), np.ones(k), prior), data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--sample", type=int, default=5000)
    parser.add_argument("--components", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    steps = {"batch_size": 1000, "max_passes": 5, "n_threads": 1, "progress": False}
    for seed in range(options.seeds):
        model, data = problem(options.rows, options.components, seed)
        sample = data[np.random.default_rng(seed).choice(len(data), options.sample, replace=False)]

        def from_sample(model=model, sample=sample, data=data, seed=seed):
            found = search(model, sample, seed=seed, n_threads=1, progress=False)
            weight = len(data) / len(sample)
            start = model.prior() + weight * (found.posterior + -1.0 * model.prior())
            return fit(model, data, initial=start, seed=seed, **steps)

        methods = {
            "fresh start": lambda m=model, d=data, s=seed: fit(m, d, seed=s, **steps),
            "annealing": lambda m=model, d=data, s=seed: fit(
                m, d, temperature=Annealing(), seed=s, **steps
            ),
            "best of ten": lambda m=model, d=data, s=seed: fit(m, d, seed=s, n_init=10, **steps),
            "search on a sample": from_sample,
        }
        elbos, seconds = {}, {}
        for name, run in methods.items():
            began = time.process_time()
            elbos[name], seconds[name] = run().elbo, time.process_time() - began
        best = max(elbos.values())
        print(
            f"seed {seed}  "
            + "  ".join(
                f"{name}: {(best - elbo) / len(data):.4f} ({seconds[name]:.1f} s)"
                for name, elbo in elbos.items()
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
