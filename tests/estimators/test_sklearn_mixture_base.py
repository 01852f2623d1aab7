"""scikit-learn's tests of what its mixtures share, with ours in their place."""

from sklearn_files import borrowed_tests

from tempering import BayesianGaussianMixture

globals().update(
    borrowed_tests(
        "sklearn.mixture.tests.test_mixture",
        {
            "sklearn.mixture.BayesianGaussianMixture": BayesianGaussianMixture,
            "sklearn.mixture.GaussianMixture": BayesianGaussianMixture,
        },
        {},
    )
)
