"""Hot restarts of a point's activations: only where they lead higher."""

import numpy as np
import pytest
from scipy.special import xlogy

from tempering.models.factorial.activations import settle_activations


def values(fields, couplings, s, z):
    """s E(z) + H(z) of each point, written out."""
    energy = (fields * z).sum(axis=1) - 0.5 * np.einsum("nj,jk,nk->n", z, couplings, z)
    return s * energy - (xlogy(z, z) + xlogy(1 - z, 1 - z)).sum(axis=1)


@pytest.mark.parametrize("s", [1.0, 0.3, "per datum"])
def test_one_more_restart_never_lowers_the_bound_of_a_point(s):
    rng = np.random.default_rng(0)
    n, k = 4000, 6
    s = rng.uniform(0.1, 1.0, n) if s == "per datum" else s
    means = rng.normal(size=(k, 4))
    fields, couplings = 8 * rng.normal(size=(n, k)), 6 * means @ means.T
    np.fill_diagonal(couplings, 0.0)
    start = rng.random((n, k))
    reached = []
    for n_restarts in range(4):
        options = {"n_restarts": n_restarts, "max_sweeps": 200}
        settled = settle_activations(fields, couplings, s, start, **options)
        reached.append(values(fields, couplings, s, settled.activations))
    rises = np.diff(reached, axis=0)
    assert rises.min() > -1e-9
    assert np.any(rises > 0.1)
