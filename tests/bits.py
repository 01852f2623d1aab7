"""Has a bit moved? Small fits of two states of the code, hashed and compared in one run.

    python tests/bits.py --against v0.1.0          # this tree against a commit
    python tests/bits.py --against HEAD --only lda # some of the fits

Floating-point results differ between processors, so no hash is in the repository: the other commit
is checked out into a temporary folder, the same fits are made with it and with this tree, and the
exact bytes of what they found are compared. (The folder stays, with what was compiled there, for
the next comparison.) Where a change is meant to move bits, name the fits it may move.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]


def corpus(seed: int = 0, n_documents: int = 300, n_words: int = 120, n_topics: int = 5) -> Any:
    """A drawn corpus, made here so that both states of the code see the same one."""
    from scipy import sparse

    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.1), size=n_topics)
    rows = []
    for _ in range(n_documents):
        proportions = rng.dirichlet(np.full(n_topics, 0.3))
        rows.append(rng.multinomial(rng.integers(20, 60), proportions @ topics))
    return sparse.csr_matrix(np.array(rows))


def blobs(seed: int = 0) -> np.ndarray:
    """Four clusters in the plane."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(0, 5, size=(4, 2))
    return centres[rng.integers(4, size=400)] + rng.normal(size=(400, 2))


def images(seed: int = 0) -> np.ndarray:
    """Sums of a few features, with noise."""
    rng = np.random.default_rng(seed)
    return (rng.random((200, 4)) < 0.4) @ rng.normal(0, 2, size=(4, 9)) + rng.normal(
        0, 0.3, size=(200, 9)
    )


def digest(values: Iterable[Any]) -> str:
    """The hash of some arrays, to the last bit."""
    content = hashlib.sha256()
    for value in values:
        array = np.ascontiguousarray(value)
        content.update(f"{array.dtype.str}{array.shape}".encode())
        content.update(array.tobytes())
    return content.hexdigest()[:16]


def topics(**options: Any) -> str:
    """A fit of topics, what it says of documents, and its score."""
    from tempering import LatentDirichletAllocation

    X = corpus()
    lda = LatentDirichletAllocation(5, random_state=0, max_iter=4, **options).fit(X)
    temperatures = [record.inverse_temperature for record in lda.history_]
    return digest([lda.components_, lda.transform(X), lda.doc_topic_prior_, temperatures])


def stream(**options: Any) -> str:
    """Topics of a stream of documents."""
    from tempering import LatentDirichletAllocation

    X = corpus()
    lda = LatentDirichletAllocation(5, random_state=0, total_samples=300, **options)
    for start in range(0, 300, 60):
        lda.partial_fit(X[start : start + 60])
    return digest([lda.components_])


class Interrupt:
    """A callback that ends a fit after some steps, as Ctrl-C would."""

    def __init__(self, steps: int):
        self.steps = steps

    def __call__(self, report: Any) -> None:
        self.steps -= 1
        if self.steps == 0:
            raise KeyboardInterrupt


def resumed_topics(**options: Any) -> str:
    """A fit of topics that is interrupted, and goes on from its checkpoint."""
    from tempering import LatentDirichletAllocation

    X, lda = corpus(), LatentDirichletAllocation(5, random_state=0, max_iter=4, **options)
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.suppress(KeyboardInterrupt):
            lda.fit(X, checkpoint=folder, callbacks=[Interrupt(7)])
        lda.fit(X, checkpoint=folder)
    temperatures = [record.inverse_temperature for record in lda.history_]
    return digest([lda.components_, lda.transform(X), lda.doc_topic_prior_, temperatures])


def mixture(kind: str, X: Any, **options: Any) -> str:
    """A mixture with one policy."""
    import tempering

    fitted = getattr(tempering, kind)(4, random_state=0, max_iter=40, **options).fit(X)
    history = [record.inverse_temperature for record in fitted.history_]
    return digest([fitted.weights_, fitted.predict_proba(X), fitted.elbo_, history])


def features(**options: Any) -> str:
    """A factorial mixture with one policy."""
    from tempering import FactorialMixture

    X = images()
    fitted = FactorialMixture(
        4, noise_variance=0.1, feature_variance=4.0, random_state=0, max_iter=40, **options
    ).fit(X)
    return digest([fitted.features_, fitted.transform(X), fitted.elbo_])


def factors(kind: str, X: Any, **options: Any) -> str:
    """Factors of a table."""
    import tempering

    fitted = getattr(tempering, kind)(4, random_state=0, max_iter=40, **options).fit(X)
    return digest([fitted.components_, fitted.transform(X), fitted.elbo_])


def lines(**options: Any) -> str:
    """A mixture of regressions with one policy."""
    from tempering import RegressionMixture

    X = blobs()
    fitted = RegressionMixture(3, random_state=0, max_iter=60, **options).fit(X[:, :1], X[:, 1])
    return digest([fitted.coef_, fitted.predict_proba(X[:, :1], X[:, 1]), fitted.elbo_])


def states(kind: str, X: Any, **options: Any) -> str:
    """A hidden Markov model with one policy."""
    import tempering

    fitted = getattr(tempering, kind)(3, random_state=0, **options).fit(X, [len(X) // 2] * 2)
    return digest([fitted.transmat_, fitted.predict_proba(X), fitted.elbo_])


def own_model(temperature: Any, interrupted: bool = False) -> str:
    """The engine by itself; with ``interrupted``, by way of a checkpoint."""
    from tempering import Mixture, fit
    from tempering.families import Dirichlet, Poisson

    data = np.random.default_rng(0).poisson([[2.0, 9.0]], size=(300, 2))
    model = Mixture(Poisson(2), Dirichlet(3), [1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0])
    options: dict[str, Any] = {"temperature": temperature, "batch_size": 50, "max_passes": 8}
    with tempfile.TemporaryDirectory() as folder:
        if interrupted:
            options["checkpoint"] = folder
            with contextlib.suppress(KeyboardInterrupt):
                fit(model, data, seed=1, callbacks=[Interrupt(9)], **options)
        result = fit(model, data, seed=1, **options)
    return digest([result.elbo, *result.posterior.values()])


def _annealing() -> Any:
    from tempering import Annealing

    return Annealing()


COUNTS = np.random.default_rng(3).poisson([[1.0, 4.0, 9.0]], size=(300, 3))

FITS: dict[str, Callable[[], str]] = {
    "lda-default": topics,
    "lda-one-thread": lambda: topics(n_jobs=1),
    "lda-resumed": resumed_topics,
    "lda-stream": stream,
    "lda-svi": lambda: topics(tempering=None),
    "lda-avi-batch": lambda: topics(tempering="annealing", learning_method="batch"),
    "lda-vt": lambda: topics(tempering="variational"),
    "lda-vt-resumed": lambda: resumed_topics(tempering="variational"),
    "lda-lvt": lambda: topics(tempering="local"),
    "lda-mean-learned": lambda: topics(update="mean", doc_topic_prior="auto"),
    "lda-jax": lambda: topics(tempering="annealing", backend="jax"),
    "gaussian-default": lambda: mixture("BayesianGaussianMixture", blobs()),
    "gaussian-lvt-diag": lambda: mixture(
        "BayesianGaussianMixture", blobs(), tempering="local", covariance_type="diag"
    ),
    "poisson-vt": lambda: mixture("PoissonMixture", COUNTS, tempering="variational"),
    "bernoulli-svi": lambda: mixture("BernoulliMixture", COUNTS > 3, batch_size=60),
    "features-default": features,
    "features-lvt": lambda: features(tempering="local", local="mean-field"),
    "factors-poisson": lambda: factors("PoissonFactorization", COUNTS),
    "factors-gaussian": lambda: factors(
        "BayesianFactorAnalysis", np.where(images() < -3, np.nan, images())
    ),
    "factors-gaussian-lvt": lambda: factors("BayesianFactorAnalysis", images(), tempering="local"),
    "lines-default": lines,
    "lines-vt": lambda: lines(tempering="variational"),
    "states-gaussian": lambda: states("GaussianHMM", blobs()),
    "states-poisson-lvt": lambda: states("PoissonHMM", COUNTS, tempering="local"),
    "engine-svi": lambda: own_model(None),
    "engine-avi": lambda: own_model(_annealing()),
    "engine-avi-resumed": lambda: own_model(_annealing(), interrupted=True),
}

#: Fits that must end in the same bits as each other.
ALIKE = (
    ("lda-default", "lda-one-thread", "lda-resumed"),
    ("lda-vt", "lda-vt-resumed"),
    ("engine-avi", "engine-avi-resumed"),
)


def hashes(source: Path, names: list[str]) -> dict[str, str]:
    """The hashes that the code in a folder gives, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    made = subprocess.run(
        [sys.executable, __file__, "--make", *names],
        env=environment,
        cwd=source,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return dict(line.split() for line in made.stdout.splitlines())


def compare(commit: str, names: list[str], may_move: list[str]) -> int:
    """Print a line for each fit; the number of those that moved and may not."""
    before = hashes(_checked_out(commit), names)
    after = hashes(ROOT / "src", names)
    moved = 0
    for name in names:
        same = before[name] == after[name]
        verdict = "same" if same else "moved, as it may" if name in may_move else "MOVED"
        moved += verdict == "MOVED"
        print(f"{name:24} {before[name]} {after[name]} {verdict}")
    for alike in ALIKE:
        different = len({after[name] for name in alike if name in after}) > 1
        moved += different
        print(f"{' = '.join(alike)}: {'NO' if different else 'yes'}")
    print(f"{len(names)} fits, {moved} moved")
    return moved


def _checked_out(commit: str) -> Path:
    """The sources of a commit, in a folder of their own."""
    full = _git("rev-parse", f"{commit}^{{commit}}").decode().strip()
    folder = Path(tempfile.gettempdir()) / "tempering-bits" / full
    if not folder.exists():
        aside = folder.with_suffix(".part")
        aside.mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "-x", "-C", aside], input=_git("archive", full, "src"), check=True)
        aside.rename(folder)
    return folder / "src"


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout


def main() -> int:
    """Compare with a commit, or (in a child) make the hashes of one state of the code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--against", default="HEAD", metavar="COMMIT", help="what to compare with")
    parser.add_argument("--only", default="", metavar="START", help="fits whose name starts so")
    parser.add_argument("--may-move", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--make", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        for name in options.make:
            print(name, FITS[name](), flush=True)
        return 0
    names = [name for name in FITS if name.startswith(options.only)]
    return min(1, compare(options.against, names, options.may_move))


if __name__ == "__main__":
    sys.exit(main())
