"""scikit-learn's tests of its mixtures, with ours in their place."""

from dataclasses import dataclass

from sklearn_files import borrowed_tests

import tempering


@dataclass(eq=False, repr=False)
class BayesianGaussianMixture(tempering.BayesianGaussianMixture):
    """With scikit-learn's prior, of which the tests know the numbers."""

    covariance_prior: object = None


globals().update(
    borrowed_tests(
        "sklearn.mixture.tests.test_bayesian_mixture",
        {"sklearn.mixture.BayesianGaussianMixture": BayesianGaussianMixture},
        {"test_compare_covar_type": "calls the private _check_parameters, _initialize_parameters"},
        slow={
            "test_monotonic_likelihood",
            "test_invariant_translation",
            "test_bayesian_mixture_fit_predict",
        },
    )
)
