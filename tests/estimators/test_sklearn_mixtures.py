"""scikit-learn's tests of its mixtures, with ours in their place."""

from sklearn_files import borrowed_tests

from tempering import BayesianGaussianMixture

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
