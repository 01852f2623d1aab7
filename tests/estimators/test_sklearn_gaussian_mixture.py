"""scikit-learn's tests of its GaussianMixture, with our Bayesian one in its place."""

from sklearn_files import borrowed_tests

from tempering import BayesianGaussianMixture

globals().update(
    borrowed_tests(
        "sklearn.mixture.tests.test_gaussian_mixture",
        {"sklearn.mixture.GaussianMixture": BayesianGaussianMixture},
        {},
    )
)
