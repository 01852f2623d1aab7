"""With the joint annealed the prior enters to a power: in each model's divergence, in the bound."""

import numpy as np
import pytest
from scipy import sparse, stats

from tempering.families import Bernoulli, Dirichlet
from tempering.inference import Algorithm, ArraySource, Constant
from tempering.inference.executors import Serial
from tempering.models import Mixture, Natural
from tempering.models.factorial_mixture import FactorialModel
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.topics import Topics
from tempering.temperature import Annealing, schedules


def of_dirichlet(posterior, prior):
    """E_q log q and E_q log p, as densities against Π_v dβ_v / β_v: there p^w is of its family.

    An entry of a Dirichlet vector is a beta variable.
    """
    total = posterior.sum()
    logs = np.array([stats.beta(a, total - a).expect(np.log) for a in posterior])
    even = np.full(prior.size, 1 / prior.size)
    log_constant = stats.dirichlet(prior).logpdf(even) - np.sum((prior - 1) * np.log(even))
    log_q = -stats.dirichlet(posterior).entropy() + logs.sum()
    return log_q, log_constant + prior @ logs


def bernoulli_mixture():
    model = Mixture(Bernoulli(1), Dirichlet(2), [0.8, 1.3], [[1.5, 0.7], [0.6, 2.0]])
    posterior = Natural(weights=[2.1, 1.7], components=[[2.0, 1.1], [0.9, 1.6]])
    parts = [of_dirichlet(posterior.weights, model.prior().weights)]
    parts += map(of_dirichlet, posterior.components, model.prior().components)
    return model, np.array([[1], [1], [0], [1], [0]]), posterior, parts


def factorial_mixture():
    model = FactorialModel(2, 2, 0.3, 0.8, 0.4)
    posterior = model.features_at(np.array([[1.0, -0.5], [0.2, 0.7]]), [5.0, 3.0])
    means, variances, _ = model.expectations(posterior)
    prior, parts = stats.norm(0, np.sqrt(0.8)), []
    for mean, variance in zip(means, variances):
        for one in mean:
            q = stats.norm(one, np.sqrt(variance))
            parts.append((-q.entropy(), q.expect(prior.logpdf)))
    return model, np.array([[1.0, 0.2], [0.3, -0.4], [1.2, 0.1]]), posterior, parts


def topic_model():
    model = LatentDirichlet(2, 3, 0.4, 0.3, tolerance=1e-7, max_iterations=5000)
    parameters = np.array([[1.5, 0.5], [0.9, 2.5], [3.0, 1.1]])
    parts = [of_dirichlet(topic, np.full(3, 0.3)) for topic in parameters.T]
    data = sparse.csr_matrix([[2, 1, 0], [0, 1, 3]])
    return model, data, Topics(parameters, 0.3), parts


PROBLEMS = [bernoulli_mixture, factorial_mixture, topic_model]


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0])
def test_the_divergence_is_that_of_scipys_densities(problem, weight):
    model, _, posterior, parts = problem()
    log_q, log_p = np.sum(parts, axis=0)
    assert model.divergence(posterior, weight) == pytest.approx(log_q - weight * log_p, rel=1e-5)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize(("temper", "weight"), [("joint", 0.4), ("likelihood", 1.0)])
def test_the_engine_records_the_bound_of_what_is_annealed(problem, temper, weight):
    """s E log p(x, z | β) and E log p(β), to a power too if the joint is annealed, plus the
    entropies of q(z) and q(β); and beside it the ELBO at T = 1."""
    model, data, posterior, parts = problem()
    log_q, log_p = np.sum(parts, axis=0)
    policy = Annealing(schedules.constant(2.5), fraction=1.0, temper=temper)
    algorithm = Algorithm(model, policy, Constant(), Serial(), data.shape[0], 10)
    (batch,) = ArraySource(data).sweep()
    step = algorithm.advance(algorithm.start(posterior, np.random.default_rng(0)), batch)
    energy, entropy = step.local.energy, step.local.entropy
    bound = 0.4 * energy + weight * log_p + entropy - log_q
    assert step.tempered_elbo == pytest.approx(bound, rel=1e-5)
    assert step.elbo == pytest.approx(energy + log_p + entropy - log_q, rel=1e-5)
