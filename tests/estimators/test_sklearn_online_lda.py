"""scikit-learn's tests of its LatentDirichletAllocation, run with ours."""

from sklearn_files import borrowed_tests

from tempering import LatentDirichletAllocation

FAILURES = {
    "test_lda_preplexity_mismatch": "not done yet",
    "test_lda_perplexity": "not done yet",
    "test_lda_score_perplexity": "not done yet",
    "test_lda_fit_perplexity": "not done yet",
    "test_lda_empty_docs": "not done yet",
    "test_verbosity[csr_matrix-True-0-3-0]": "not done yet",
    "test_verbosity[csr_matrix-True-1-3-3]": "not done yet",
    "test_verbosity[csr_matrix-True-2-3-1]": "not done yet",
    "test_verbosity[csr_array-True-0-3-0]": "not done yet",
    "test_verbosity[csr_array-True-1-3-3]": "not done yet",
    "test_verbosity[csr_array-True-2-3-1]": "not done yet",
    "test_lda_dtype_match": "not done yet",
    "test_lda_numerical_consistency": "not done yet",
}

globals().update(
    borrowed_tests(
        "sklearn.decomposition.tests.test_online_lda",
        {"sklearn.decomposition.LatentDirichletAllocation": LatentDirichletAllocation},
        FAILURES,
    )
)
