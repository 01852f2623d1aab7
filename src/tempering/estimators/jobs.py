"""The parameter ``n_jobs``, which all estimators have."""

from __future__ import annotations

from numbers import Integral

from sklearn.utils._param_validation import Interval

from tempering.models.arguments import MOST_THREADS

#: Threads: so many; or, as in joblib, -1 for one a core, -2 for one less, and so on.
N_JOBS = [
    Interval(Integral, 1, MOST_THREADS, closed="both"),
    Interval(Integral, None, -1, closed="right"),
    None,
]
