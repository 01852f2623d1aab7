"""Import, first fit and memory of every estimator, beside a peer where one is installed.

    python benchmarks/start_up.py [--only GaussianHMM hmmlearn] [--corpus arxiv.npz]

Each row is a fresh process with one thread and the seconds of its processor: ``import`` of the
class; ``empty``, the first fit of 300 rows before any kernel was compiled; ``filled``, the same in
the next process; ``again``, a second fit there. The memory is the peak of that process. Peers are
the estimators of scikit-learn, hmmlearn and tomotopy. With a corpus, topics are fitted to its first
3,000 documents instead.
"""

import single_thread  # noqa: F401, I001  before anything else

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from importlib import import_module, util
from pathlib import Path

#: Name, module, arguments and data of each program; a peer follows what it is compared with.
PROGRAMS = [
    ("LatentDirichletAllocation", "tempering", {"n_components": 10}, "documents"),
    ("LatentDirichletAllocation", "sklearn.decomposition", {"n_components": 10}, "documents"),
    ("LDAModel", "tomotopy", {"k": 10}, "documents"),
    ("GaussianHMM", "tempering", {"n_components": 3}, "points"),
    ("GaussianHMM", "hmmlearn.hmm", {"n_components": 3}, "points"),
    ("CategoricalHMM", "tempering", {"n_components": 3}, "symbols"),
    ("PoissonHMM", "tempering", {"n_components": 3}, "counts"),
    ("BayesianGaussianMixture", "tempering", {"n_components": 3}, "points"),
    ("BayesianGaussianMixture", "sklearn.mixture", {"n_components": 3}, "points"),
    ("BernoulliMixture", "tempering", {"n_components": 3}, "bits"),
    ("PoissonMixture", "tempering", {"n_components": 3}, "counts"),
    ("RegressionMixture", "tempering", {"n_components": 3}, "pairs"),
    ("FactorialMixture", "tempering", {"n_components": 3}, "points"),
    ("BayesianFactorAnalysis", "tempering", {"n_components": 3}, "points"),
    ("FactorAnalysis", "sklearn.decomposition", {"n_components": 3}, "points"),
    ("PoissonFactorization", "tempering", {"n_components": 5}, "counts"),
    ("NMF", "sklearn.decomposition", {"n_components": 5}, "counts"),
]


def main():
    """Measure all programs, each in processes of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="names of classes or packages")
    parser.add_argument("--corpus", default="", help="counts, by scipy's save_npz")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        print(json.dumps(measure(*PROGRAMS[options.child], options.corpus)))
        return
    rows = []
    for number, (name, module, _, _) in enumerate(PROGRAMS):
        package = module.split(".")[0]
        if options.only and not {name, package} & {*options.only}:
            continue
        if util.find_spec(package) is None:
            print(f"{package} is not installed")
            continue
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "PYTHONDONTWRITEBYTECODE": ""}
            child = [sys.executable, "-W", "ignore", __file__, "--child", str(number)]
            empty, filled = (
                json.loads(
                    subprocess.run(
                        [*child, "--corpus", options.corpus],
                        env=environment,
                        check=True,
                        capture_output=True,
                        text=True,
                    ).stdout.splitlines()[-1]
                )
                for _ in range(2)
            )
        row = {"program": f"{package} {name}", "import, s": min(empty["import"], filled["import"])}
        row |= {"empty, s": empty["fit"], "filled, s": filled["fit"], "again, s": filled["again"]}
        row |= {"imported, MB": filled["imported"], "peak, MB": filled["peak"]}
        rows.append(
            {key: part if key == "program" else round(part, 2) for key, part in row.items()}
        )
        print(rows[-1]["program"], flush=True)

    from lda_common import print_table

    print_table("Import, first fit and memory", rows)


def measure(name, module, arguments, kind, corpus):
    """Import a class and fit it twice."""
    import numpy as np
    from scipy import sparse

    data = made(kind, np.random.default_rng(0))
    if kind == "documents" and corpus:
        data = sparse.load_npz(corpus)[:3000]
    began = time.process_time()
    program = getattr(import_module(module), name)
    result = {"import": time.process_time() - began, "imported": peak_megabytes()}
    for key in ("fit", "again"):
        began = time.process_time()
        if module == "tomotopy":
            model = program(**arguments, seed=0)
            for row in sparse.csr_matrix(data):
                words = np.repeat(row.indices, row.data.astype(int))
                if words.size:
                    model.add_doc([str(word) for word in words])
            model.train(200, workers=1)
        else:
            model = program(**arguments, random_state=0)
            model.fit(*data if isinstance(data, tuple) else [data])
        result[key] = time.process_time() - began
    return {**result, "peak": peak_megabytes()}


def made(kind, rng):
    """300 rows of data."""
    points = rng.normal(size=(300, 6))
    points += 4.0 * (rng.permutation(300) % 3)[:, None]
    return {
        "documents": rng.poisson(rng.gamma(0.1, 1.0, size=(300, 200))),
        "points": points,
        "symbols": rng.integers(0, 5, size=(300, 1)),
        "counts": rng.poisson(rng.gamma(0.3, 1.0, size=(300, 50))),
        "bits": rng.integers(0, 2, size=(300, 10)),
        "pairs": (points, points.sum(axis=1) + rng.normal(size=300)),
    }[kind]


def peak_megabytes():
    """Return the most memory that this process has held."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not ru_maxrss: on Linux that counts what the parent held when it forked.
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())[0]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # bytes, on macOS


if __name__ == "__main__":
    main()
