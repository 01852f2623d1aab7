"""scikit-learn's tests of its GaussianMixture, with our Bayesian one in its place."""

from sklearn_files import borrowed_tests

from tempering import BayesianGaussianMixture

INIT = (
    "sets weights_init, means_init or precisions_init, which a Bayesian mixture has not "
    "(scikit-learn's neither): it starts from assignments"
)
CRITERIA = "AIC and BIC are of maximum likelihood; a Bayesian mixture has its ELBO"


class GaussianMixture(BayesianGaussianMixture):
    """By the name that errors are expected to tell."""


globals().update(
    borrowed_tests(
        "sklearn.mixture.tests.test_gaussian_mixture",
        {"sklearn.mixture.GaussianMixture": GaussianMixture},
        {
            "test_check_weights": INIT,
            "test_check_means": INIT,
            "test_check_precisions": INIT,
            "test_gaussian_mixture_estimate_log_prob_resp": INIT,
            "test_gaussian_mixture_predict_predict_proba": INIT,
            "test_gaussian_mixture_fit_predict": INIT,
            "test_gaussian_mixture_setting_best_params": INIT,
            "test_max_iter_zero": INIT,
            "test_gaussian_mixture_precisions_init_diag": INIT,
            "test_gaussian_mixture_all_init_does_not_estimate_gaussian_parameters": INIT,
            "test_gaussian_mixture_precisions_init": "calls the private _set_parameters, "
            "_initialize_parameters and _estimate_gaussian_parameters",
            "test_gaussian_mixture_n_parameters": CRITERIA,
            "test_bic_1d_1component": CRITERIA,
            "test_gaussian_mixture_aic_bic": CRITERIA,
            "test_monotonic_likelihood": "wants score to rise with each pass; what rises is the "
            "ELBO, and score is the predictive density",
            "test_sample": "wants draws of every component; one that holds no data is hardly drawn",
            "test_regularisation": "wants an error's exact words, of an empirical covariance",
        },
        slow={
            "test_gaussian_mixture_fit_best_params",
            "test_warm_start",
            "test_fitted_precision_covariance_concistency",
        },
        left_out={  # arrays of other libraries
            "test_gaussian_mixture_array_api_compliance",
            "test_gaussian_mixture_raises_where_array_api_not_implemented",
        },
    )
)
