"""Topic models under each temperature policy of the paper, at the paper's settings.

The policies here follow the paper: q(y) starts uniform, nothing is damped and no end at T = 1 is
forced. Those that this package would choose stand beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tempering.estimators import LatentDirichletAllocation
from tempering.estimators.topic_transformer import POLICIES
from tempering.evaluation import Split, completion_score
from tempering.inference import History, Report, RobbinsMonro, fit
from tempering.models.base import LocalStep
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.topics import Topics
from tempering.temperature import (
    Annealing,
    Heat,
    LocalTempering,
    Surroundings,
    Untempered,
    VariationalTempering,
    schedules,
)
from tempering.temperature.tempering import TemperingHeat

#: The mean of the paper's 100 temperatures from 1 to 10, where its AVI starts.
PAPER_START = float(np.geomspace(1.0, 10.0, 100).mean())
#: Steps between two updates of T in the paper; a run of fewer than 20 of these has 20 updates.
PAPER_EVERY, FEWEST_UPDATES = 1000, 20
#: Of the proportions, where topics are judged by the exact posterior of θ.
GIBBS_PRIOR = 0.1
#: How many draws of the topics log C of the printed formula is estimated from, as in the paper.
DRAWS = 100

DEFAULT = "default"
PRINTED_VT, PRINTED_LVT = "VT, as printed", "LVT, as printed"
DAMPED_VT, DAMPED_LVT = "VT, damped", "LVT, damped"


@dataclass(frozen=True, eq=False)
class PaperTempering(VariationalTempering):
    """VT whose q(y) stays uniform until its first update, after ``every`` steps."""

    def update(
        self, heat: TemperingHeat, local: LocalStep, surroundings: Surroundings
    ) -> tuple[LocalStep, TemperingHeat]:
        if heat.step == 0:
            return local, replace(heat, step=1)
        return super().update(heat, local, surroundings)


class Run(NamedTuple):
    """How long a fit is, and its step sizes (τ + t)^−0.7."""

    passes: float
    batch_size: int = 100
    offset: float = 1024.0

    def steps(self, n_documents: int) -> int:
        """Steps of the whole run."""
        return int(np.ceil(self.passes * n_documents / self.batch_size))

    def every(self, n_documents: int) -> int:
        """Steps between two updates of T."""
        return int(np.clip(self.steps(n_documents) // FEWEST_UPDATES, 1, PAPER_EVERY))


#: The quick form has few documents: with the paper's step sizes nothing would move.
QUICK_RUN = Run(passes=3, batch_size=20, offset=16.0)


class Fitted(NamedTuple):
    """Topics [K, V], what was learned, and how."""

    topics: np.ndarray
    history: History
    model: LatentDirichlet | None = None
    posterior: Topics | None = None
    heat: Heat | None = None


def annealed(passes: float, start: float = PAPER_START) -> Annealing:
    """The paper's AVI: linear in T, over so many passes."""
    return Annealing(schedules.linear(start), passes=passes)


def policy_of(method: str, every: int) -> Untempered:
    """The temperature policy that a method's name stands for."""
    if method.startswith("AVI, tA = "):
        return annealed(float(method.removeprefix("AVI, tA = ")))
    makers: dict[str, Callable[[], Untempered]] = {
        "SVI": Untempered,
        "VT": lambda: PaperTempering(formula="calibrated", every=every, fraction=None),
        PRINTED_VT: lambda: PaperTempering(
            formula="paper", every=every, fraction=None, n_samples=DRAWS
        ),
        DAMPED_VT: POLICIES["variational"],
        "LVT": lambda: LocalTempering(max_alternations=2, tolerance=0.02, fraction=None),
        PRINTED_LVT: lambda: LocalTempering(
            formula="paper", max_alternations=2, tolerance=0.02, fraction=None
        ),
        DAMPED_LVT: POLICIES["local"],
    }
    return makers[method]()


def fit_topics(
    counts: Any,
    n_topics: int,
    policy: Untempered | None,
    seed: int,
    run: Run,
    *,
    alpha: float | None = None,
    eta: float | None = None,
    callback: Callable[[Report], None] | None = None,
) -> Fitted:
    """Fit with a policy; with None for it, as this package does by itself.

    A seed decides the first topics and the order of the documents, the same for all policies; but
    this package by itself starts from words.
    """
    callbacks = [] if callback is None else [callback]
    if policy is None:
        # Whole passes only, so it may see fewer documents than the others, never more.
        estimator = LatentDirichletAllocation(
            n_topics,
            doc_topic_prior=alpha,
            topic_word_prior=eta,
            max_iter=max(1, int(run.passes)),
            n_jobs=1,
            random_state=seed,
        ).fit(counts, callbacks=callbacks)
        return Fitted(normalised(estimator.components_), estimator.history_)
    model = LatentDirichlet(
        n_topics,
        counts.shape[1],
        1.0 / n_topics if alpha is None else alpha,
        1.0 / n_topics if eta is None else eta,
        tolerance=1e-3,
        mean_length=float(counts.sum(dtype=np.float64)) / counts.shape[0],
    )
    result = fit(
        model,
        counts,
        temperature=policy,
        learning_rate=RobbinsMonro(run.offset, 0.7),
        batch_size=run.batch_size,
        max_passes=run.passes,
        finish=False,
        seed=seed,
        n_threads=1,
        elbo_every=run.steps(counts.shape[0]),
        final_elbo=False,
        callbacks=callbacks,
        progress=False,
    )
    topics = normalised(result.posterior.parameters().T)
    return Fitted(topics, result.history, model, result.posterior, result.heat)


def normalised(weights: np.ndarray) -> np.ndarray:
    """Rows that sum to 1."""
    weights = np.asarray(weights, np.float64)
    return weights / weights.sum(axis=1, keepdims=True)


class ScoreCurve:
    """A callback that scores the topics now and then.

    Parameters
    ----------
    split : Split
        Held-out documents in halves.
    n_topics : int
        K; proportions are inferred at T = 1 with α = 1/K.
    n_visits : float
        Documents that the run is going to visit.
    n_points : int
        How often to score: more at first, when most happens.
    """

    def __init__(self, split: Split, n_topics: int, n_visits: float, n_points: int):
        shares = np.linspace(0.0, 1.0, n_points + 1)[1:] ** 1.5
        self._due = [int(visit) for visit in shares * n_visits]
        self._split, self._alpha = split, 1.0 / n_topics
        self.visits: list[int] = []
        self.scores: list[float] = []

    def __call__(self, report: Report) -> None:
        seen = report.record.data_seen
        if not self._due or seen < self._due[0]:
            return
        self._due = [visit for visit in self._due if visit > seen]
        topics = normalised(report.posterior.parameters().T)
        self.visits.append(seen)
        self.scores.append(round(mean_field_score(self._split, topics, self._alpha), 5))


def mean_field_score(split: Split, topics: np.ndarray, alpha: float) -> float:
    """The paper's measure: nats a held-out word, θ by mean-field inference at T = 1."""
    return completion_score(*split, topics, alpha, "vi", n_threads=1)


def final_scores(split: Split, topics: np.ndarray) -> dict[str, float]:
    """``vi``, the paper's measure at α = 1/K, and ``gibbs``, by the exact posterior of θ."""
    exact = completion_score(*split, topics, GIBBS_PRIOR, "gibbs", n_threads=1)
    return {
        "vi": round(mean_field_score(split, topics, 1.0 / len(topics)), 5),
        "gibbs": round(exact, 5),
    }


def temperature_path(history: History, n_points: int = 80) -> dict[str, list]:
    """The temperature by documents visited, thinned out."""
    steps = np.unique(np.linspace(0, len(history) - 1, n_points).astype(int))
    return {
        "heat_visits": history["data_seen"][steps].tolist(),
        "temperatures": np.round(history["temperature"][steps], 4).tolist(),
    }
