"""Single runs with and without heat: mean ELBO, passes and CPU seconds on test problems.

python benchmarks/policies.py --seeds 4
"""

import argparse
import time
import warnings

import numpy as np

from problems import PROBLEMS
from tempering import AdaptiveTempering, Annealing, fit

NAMES = ["25 on a grid", "20 in 10-D", "answers", "HMM", "Poisson factors", "blocks"]
POLICIES = {"plain": None, "annealing": Annealing(passes=100), "adaptive": AdaptiveTempering()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", nargs="+", default=NAMES, choices=PROBLEMS)
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.problems:
        for method, policy in POLICIES.items():
            rows = []
            for seed in range(300, 300 + options.seeds):
                model, data = PROBLEMS[name](seed)
                began = time.process_time()
                found = fit(
                    model, data, temperature=policy, max_passes=1000, seed=seed, n_threads=1
                )
                spent = time.process_time() - began
                rows.append((found.elbo, found.history[-1].passes, spent))
            elbo, passes, seconds = np.mean(rows, axis=0)
            print(f"{name:18} {method:10} {elbo:10,.0f} {passes:6.0f} passes {seconds:6.2f} s")


if __name__ == "__main__":
    main()
