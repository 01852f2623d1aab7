"""The models whose files stand under ``storage/golden``, one directory a format.

    python tests/golden_models.py

writes those of the current format anew, with what they predict. Files of a format that was released
are never written again: they show that later versions can read them.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np

import tempering
from tempering.estimators.saving import FORMAT

GOLDEN = Path(__file__).parent / "storage" / "golden"


def data(name):
    """Six rows, the same on any machine."""
    rows, columns = np.indices((6, 4))
    counts = (rows * (columns + 2) + columns**2) % 5
    if name in ("LatentDirichletAllocation", "PoissonMixture"):
        return counts
    if name == "BernoulliMixture":
        return counts > 1
    return counts[:, :2] + 0.25 * np.sin(rows[:, :2])


def models():
    """Each class, fitted, with something to remember besides the posterior."""
    common = {"n_components": 2, "random_state": 0, "n_jobs": 1}
    topics = tempering.LatentDirichletAllocation(
        **common, max_iter=3, doc_topic_prior="auto", tempering="variational", batch_size=3
    )
    yield topics, ["one", "zwei", "trois", "четыре"]
    yield tempering.BayesianGaussianMixture(**common, max_iter=4), None
    yield tempering.BernoulliMixture(**common, max_iter=4), None
    yield tempering.PoissonMixture(**common, max_iter=4, tempering=None), None
    learn = ("noise_variance", "activation_probability")
    yield tempering.FactorialMixture(**common, max_iter=4, learn=learn), None


def predictions(model, X):
    """What a model tells of the rows, as lists."""
    method = model.transform if hasattr(model, "transform") else model.predict_proba
    told = {"rows": method(X).tolist(), "score": model.score(X)}
    if hasattr(model, "partial_fit"):
        model.partial_fit(X)
        told["rows_after_partial_fit"] = method(X).tolist()
    return told


def write():
    warnings.simplefilter("ignore")
    for model, vocabulary in models():
        name = type(model).__name__
        folder = GOLDEN / f"format-{FORMAT}" / name
        X = data(name)
        model.fit(X).save(folder, vocabulary, overwrite=folder.exists())
        expected = {"history_length": len(model.history_), **predictions(model, X)}
        (folder / "expected.json").write_text(json.dumps(expected, indent=1))


if __name__ == "__main__":
    sys.exit(write())
