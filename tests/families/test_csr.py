"""Sparse matrices that lie about their shape are refused; good ones are shared, not changed."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from tempering.families.checks import canonical_csr, check_compressed, check_sparse_counts


def compressed(kind, **parts):
    matrix = getattr(sparse, f"{kind}_matrix")(np.eye(3, 4))
    for name, value in parts.items():
        getattr(matrix, name)[:] = value
    return matrix


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"indices": [0, 1, 9]}, "must be < "),
        ({"indices": [0, -1, 2]}, "must be >= 0"),
    ],
)
def test_indices_out_of_the_shape_are_refused(kind, parts, problem):
    with pytest.raises(ValueError, match=f"X is no valid sparse matrix: .*{problem}"):
        check_compressed(compressed(kind, **parts), "X")


@pytest.mark.parametrize(
    ("indptr", "problem"),
    [
        ([0, 2, 1, 3], "non-decreasing"),
        ([1, 1, 2, 3], "should start with 0"),
        ([0, 1, 2, 9], "should be less than the size"),
    ],
)
def test_row_pointers_that_mislead_are_refused(indptr, problem):
    with pytest.raises(ValueError, match=problem):
        check_compressed(compressed("csr", indptr=indptr), "X")


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
@pytest.mark.parametrize("shape", [(3, 4), (0, 4), (3, 0)])
def test_good_matrices_pass(kind, shape):
    check_compressed(getattr(sparse, f"{kind}_array")(np.ones(shape)), "X")


def test_entries_beyond_the_last_row_do_not_count():
    arrays = np.array([1.0, 2.0, np.nan]), np.array([0, 1, 99]), np.array([0, 1, 2])
    matrix = sparse.csr_matrix((2, 3))
    matrix.data, matrix.indices, matrix.indptr = arrays
    check_compressed(matrix, "X")
    found = canonical_csr(matrix)
    assert_array_equal(found.toarray(), [[1, 0, 0], [0, 2, 0]])
    check_sparse_counts(found, "X must hold counts")


def test_words_are_sorted_and_added_up_in_memory_of_their_own():
    data = np.array([200, 100, 7], np.uint8)
    arrays = data, np.array([2, 2, 0], np.int32), np.array([0, 3], np.int32)
    for array in arrays:
        array.flags.writeable = False
    found = canonical_csr(sparse.csr_matrix(arrays, shape=(1, 3)))
    assert_array_equal(found.toarray(), [[7, 0, 300]])
    assert_array_equal(arrays[0], [200, 100, 7])
    assert_array_equal(arrays[1], [2, 2, 0])


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array])
def test_what_is_sorted_is_shared(make):
    matrix = make(np.arange(6.0).reshape(2, 3))
    found = canonical_csr(matrix)
    assert type(found) is type(matrix)
    assert np.shares_memory(found.data, matrix.data)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, 1e300])
def test_counts_are_named_by_row_and_column(value):
    matrix = sparse.csr_matrix([[1.0, 2.0], [0.0, value]])
    with pytest.raises(ValueError, match=r"row 1, column 1 holds .*\(1 such value\(s\)\)"):
        check_sparse_counts(matrix, "X must hold counts")
