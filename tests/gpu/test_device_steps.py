"""Local steps on the device against the CPU kernels: plain, and the GPU kernels interpreted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, special

pytest.importorskip("jax")

from tempering.gpu import jax_functions, pallas_kernels
from tempering.gpu.device_data import CorpusSource, DeviceCorpus, cut_into_groups, ladder_step
from tempering.gpu.device_lda import DeviceLatentDirichlet
from tempering.gpu.device_topics import DeviceTopics
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.topics import Topics

N_WORDS, N_TOPICS = 300, 7
LENGTHS = [1, 2, 0, 3, 17, 60, 120, 5000, 0, 40, 40, 40]
TIGHT = {"tolerance": 1e-6, "max_iterations": 1000}
UPDATES = ["variational", "mean"]
KERNELS = ["plain", "interpreted"]
#: Where `test_the_step_equals_that_of_the_cpu` stands beside: the interpreter compiles for seconds.
MOSTLY_PLAIN = ["plain", pytest.param("interpreted", marks=pytest.mark.slow)]


def make_documents(lengths=LENGTHS, seed=0):
    """Documents of these lengths in words: ragged, empty and very long ones among them."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(N_WORDS, 0.05), N_TOPICS)
    theta = rng.dirichlet(np.full(N_TOPICS, 0.3), len(lengths))
    counts = [rng.multinomial(n, p @ topics) for n, p in zip(lengths, theta)]
    return sparse.csr_matrix(np.array(counts))


def make_topics(seed=1, smallest=0.05):
    rng = np.random.default_rng(seed)
    parameters = smallest + rng.gamma(0.2, 20.0, (N_WORDS, N_TOPICS))
    return Topics(parameters, smallest)


def new_model(update="variational", alpha=0.1, **options):
    return LatentDirichlet(N_TOPICS, N_WORDS, alpha, 0.05, update=update, **{**TIGHT, **options})


def on_device(kernel, model, data, topics):
    """The model, all documents and the expectations, on the device."""
    device = DeviceLatentDirichlet.of(model, kernel)
    (batch,) = CorpusSource(data).sweep()
    return device, batch.data, device.expectations(DeviceTopics.of(topics))


def relative_l1(actual, expected):
    return np.abs(actual - expected).sum() / np.abs(expected).sum()


def assert_same(found, expected):
    """A step on the device equals that of the CPU."""
    statistics = np.zeros((N_WORDS, N_TOPICS))
    statistics[expected.statistics.words] = expected.statistics.values
    assert relative_l1(np.asarray(found.statistics.values)[:, :N_TOPICS], statistics) < 1e-4
    assert relative_l1(found.gamma[:, :N_TOPICS], expected.gamma) < 1e-4


def both_steps(kernel, model, data, topics, s):
    device, documents, expectations = on_device(kernel, model, data, topics)
    found = device.local_step(documents, expectations, s)
    return found, model.local_step(data, model.expectations(topics), s)


@pytest.mark.parametrize(
    ("kernel", "update", "s"),
    [
        *((kernel, update, "one for each") for kernel in KERNELS for update in UPDATES),
        # With one for all, the kernels take powers of β.
        *((kernel, "variational", 0.7) for kernel in KERNELS),
    ],
)
def test_the_step_equals_that_of_the_cpu(kernel, update, s):
    data = make_documents()
    if isinstance(s, str):
        s = np.linspace(0.1, 1.0, data.shape[0])
    found, expected = both_steps(kernel, new_model(update), data, make_topics(), s)
    assert_same(found, expected)
    assert_allclose(found.gamma[:, :N_TOPICS][np.diff(data.indptr) == 0], 0.1, rtol=1e-6)
    if update == "variational":
        assert_allclose(found.energies, expected.energies, rtol=1e-4, atol=1e-3)
        assert_allclose(found.entropy, expected.entropy, rtol=1e-4)
        assert_allclose(found.tempered_energy, expected.tempered_energy, rtol=1e-4)


@pytest.mark.parametrize("kernel", MOSTLY_PLAIN)
def test_topics_out_of_the_range_of_float32(kernel):
    # E log β and E log θ of a topic that has not seen a word are near −1000 with these priors.
    data, topics = make_documents([30, 80, 200]), make_topics(smallest=1e-3)
    assert_same(*both_steps(kernel, new_model(alpha=1e-3), data, topics, 1.0))


@pytest.mark.parametrize("kernel", MOSTLY_PLAIN)
def test_a_prior_for_each_topic_and_a_step_that_goes_on(kernel):
    data, topics, s = make_documents(), make_topics(), np.linspace(0.2, 1.0, len(LENGTHS))
    # One sweep tells where it started.
    alpha = np.linspace(0.05, 1.0, N_TOPICS)
    model = new_model(alpha=alpha, min_iterations=1, max_iterations=1)
    first, expected = both_steps(kernel, model, data, topics, 0.7)
    assert_same(first, expected)
    device, documents, expectations = on_device(kernel, model, data, topics)
    again = device.continue_local_step(first, documents, expectations, s)
    expected = model.continue_local_step(expected, data, model.expectations(topics), s)
    assert_same(again, expected)
    anew = device.local_step(documents, expectations, s)
    assert relative_l1(anew.gamma[:, :N_TOPICS], expected.gamma) > 1e-2


@pytest.mark.parametrize("kernel", MOSTLY_PLAIN)
def test_documents_stop_when_those_of_the_cpu_do(kernel):
    model = new_model(tolerance=1e-2, max_iterations=3)
    assert_same(*both_steps(kernel, model, make_documents([200] * 20), make_topics(), 1.0))


@given(
    lengths=st.lists(st.integers(0, 90), min_size=1, max_size=8),
    s=st.floats(0.05, 1.0),
    update=st.sampled_from(UPDATES),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=5, deadline=None)
def test_any_documents(lengths, s, update, seed):
    data = make_documents(lengths, seed)
    if data.nnz == 0:
        return
    found, expected = both_steps("plain", new_model(update), data, make_topics(seed), s)
    statistics = np.asarray(found.statistics.values)[:, :N_TOPICS]
    # Each document is at a fixed point, where a short one has several; sums hold anyhow.
    assert_allclose(statistics.sum(), s * data.sum(), rtol=1e-5)
    words = expected.statistics.words
    assert_allclose(
        statistics[words].sum(axis=1), expected.statistics.values.sum(axis=1), rtol=1e-4
    )
    assert_allclose(found.gamma[:, :N_TOPICS].sum(axis=1), expected.gamma.sum(axis=1), rtol=1e-4)


def test_digamma():
    x = np.exp(np.random.default_rng(0).uniform(-20, 15, 20_000)).astype(np.float32)
    expected = special.digamma(x.astype(float))
    assert_allclose(jax_functions.digamma(x), expected, rtol=2e-6, atol=2e-6)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=20), st.sampled_from([1, 3, 8]))
@settings(max_examples=6, deadline=None)
def test_groups_hold_every_document_once(lengths, size):
    lengths = np.array(lengths)
    data = sparse.csr_matrix(np.arange(300) < lengths[:, None], dtype=np.float32)
    corpora = [DeviceCorpus(data, resident) for resident in (False, True)]
    seen = []
    for group in cut_into_groups(lengths, np.arange(lengths.size), size):
        seen.extend(group.rows)
        assert group.width == ladder_step(int(lengths[group.rows].max()))
        for corpus in corpora:
            columns, counts, own_lengths = (np.asarray(a) for a in corpus.rectangle(group))
            assert columns.shape == (group.size, group.width)
            for row, own, own_counts in zip(group.rows, columns, counts):
                n = lengths[row]
                assert_array_equal(own[:n], data[row].indices)
                assert_array_equal(own[n:], 300)
                assert_array_equal(own_counts, own < 300)
            assert own_lengths.sum() == lengths[group.rows].sum()
    assert sorted(seen) == list(range(lengths.size))


def test_documents_that_use_no_topic_more_than_others():
    """Shares of 1/256 are below what counts as used."""
    data = make_documents([0, 30, 400])
    model = LatentDirichlet(256, N_WORDS, 0.05, 0.05, update="mean", tolerance=1e-2)
    step = on_device("interpreted", model, data, Topics(np.ones((N_WORDS, 256)), 0.05))
    gamma = step[0].local_step(*step[1:], 1.0).gamma[:, :256]
    assert_allclose(gamma, 0.05 + np.tile([[0], [30 / 256], [400 / 256]], 256), rtol=1e-4)


def test_documents_that_settle_with_few_topics_first():
    """The kernels leave topics out on the way, and end where a sweep over all moves little."""
    rng = np.random.default_rng(0)
    beta = rng.dirichlet(np.full(N_WORDS, 0.05), 40)
    # The last document uses all topics, so that they are never few.
    theta = np.vstack([rng.dirichlet(np.full(40, 0.03), 7), np.full((1, 40), 1 / 40)])
    lengths = [0, 5, 20, 60, 60, 200, 90, 2000]
    data = sparse.csr_matrix([rng.multinomial(n, p @ beta) for n, p in zip(lengths, theta)])
    model = LatentDirichlet(40, N_WORDS, 0.05, 0.05, update="mean", tolerance=1e-2)
    topics = Topics(np.float32(0.05) + np.float32(1000.0) * beta.T.astype(np.float32), 0.05)
    device, documents, expectations = on_device("interpreted", model, data, topics)
    log_beta = np.log(topics.parameters() / topics.parameters().sum(axis=0))
    for s in (1.0, 0.3):
        found = device.local_step(documents, expectations, s)
        statistics = np.asarray(found.statistics.values)[:, :40]
        assert_allclose(statistics.sum(axis=1), s * data.sum(axis=0).A1, rtol=1e-4, atol=1e-5)
        mass = (found.gamma[:, :40] - 0.05) / s
        log_joint = special.digamma(found.gamma[:, None, :40]) + log_beta
        swept = np.einsum("dv,dvk->dk", data.toarray(), special.softmax(s * log_joint, axis=2))
        assert np.all(np.abs(swept - mass).sum(axis=1) <= 0.015 * np.maximum(lengths, 1))


def test_products_that_leave_the_range_of_numbers():
    """The third word has a topic that the document does not use at the start, nor has it another:
    e^−100 in both cases, which is nothing in float32."""
    columns, counts = np.full((1, 32), 3, np.int32), np.zeros((1, 32), np.float32)
    columns[0, :3], counts[0, :3] = [0, 1, 2], [9, 9, 2]
    documents = columns, counts, np.int32([3])
    table = np.full((3, 32), -100.0, np.float32)
    table[[0, 1, 2], [0, 0, 1]] = 0.0
    mass, alpha = np.zeros((1, 32), np.float32), np.full(32, 0.01, np.float32)
    mass[0, 0] = 20.0
    given = *documents, np.float32(1.0), mass, table, alpha, jax_functions.SweepLimits(1e-6, 1, 100)
    for found, expected in zip(
        pallas_kernels.solve_group(*given, interpret=True), jax_functions.solve_group(*given)
    ):
        assert_allclose(found, expected, rtol=1e-5)
    assert found.max() > 1  # sweeps


def both_solved(words, start, table, alpha, limits, s=1.0):
    """One document, by the kernels interpreted and by plain JAX: γ, statistics and sweeps."""
    n_words, n_topics = table.shape
    columns, counts = np.full((1, 32), n_words, np.int32), np.zeros((1, 32), np.float32)
    columns[0, : len(words)], counts[0, : len(words)] = np.arange(len(words)), words
    mass = np.zeros((1, n_topics), np.float32)
    mass[0, : len(start)] = start
    documents = columns, counts, np.int32([len(words)])
    table, alpha = table.astype(np.float32), np.full(n_topics, alpha, np.float32)
    given = *documents, np.float32(s), mass, table, alpha, jax_functions.SweepLimits(*limits)
    return pallas_kernels.solve_group(*given, interpret=True), jax_functions.solve_group(*given)


def test_many_of_a_word_with_small_products():
    """A sum of e^−86 is a number of float32, and a thousand over it is none."""
    table = np.full((2, 32), -200.0)
    table[[0, 1], [0, 1]], table[1, 0] = 0.0, -86.0
    for found, expected in zip(*both_solved([2000, 1000], [3000], table, 0.01, (1e-6, 1, 100))):
        assert_allclose(found, expected, rtol=1e-4)


def test_a_word_that_only_the_last_sweep_left_out():
    """The second word gives a topic to the third, which had none in the one sweep there is."""
    table = np.full((3, 64), -300.0)
    table[[0, 1, 2], [0, 1, 2]] = 0.0
    table[1, 0], table[2, 1] = -60.0, -55.0
    start = [33, 0.01]
    for found, expected in zip(*both_solved([20, 5, 8], start, table, 0.01, (1e-6, 1, 1))):
        assert_allclose(found, expected, rtol=1e-4)


def test_a_word_that_stands_alone_and_topics_that_fill_up():
    """What fills a row up to 160 topics is not to push θ of the others out of the range."""
    alpha = np.full(150, 0.001)
    alpha[0] = 0.0011
    beta = np.tile([0.05, 0.95], (150, 1))
    beta[5] = 0.95, 0.05
    # Topic 5 is taken for its word; topic 0, of the larger prior, were the start lost.
    topics = Topics(1e6 * beta.T, 1e-3)
    model = LatentDirichlet(150, 2, alpha, 1e-3, update="mean", tolerance=1e-2)
    data = sparse.csr_matrix([[1, 0], [1, 0]])
    found = []
    for kernel in KERNELS:
        device, documents, expectations = on_device(kernel, model, data, topics)
        found.append(device.local_step(documents, expectations, 1.0).gamma[:, :150])
    assert_allclose(found[1], found[0], rtol=1e-3)


def test_a_document_of_one_topic_settles_soon():
    """Also where the kernels are interpreted, the few topics are those that it uses."""
    table = np.full((1, 64), -3.0)
    table[0, 5] = 0.0
    found, expected = both_solved([1], [1 / 64] * 64, table, 0.01, (1e-2, 1, 100))
    assert_allclose(found[0], expected[0], rtol=1e-4)
    assert found[2][0] < 10


@pytest.mark.parametrize("n_words", [65_535, 65_536])
def test_words_are_sorted_by_16_bits_where_they_fit(n_words):
    columns = np.random.default_rng(0).integers(0, n_words, (16, 32), dtype=np.int32)
    columns[:, 30:], columns[0, :2] = n_words, [n_words - 1, 0]
    (firsts, lasts), documents, order = pallas_kernels.entries_by_word(columns, n_words)
    expected = np.argsort(columns.ravel(), kind="stable")
    ends = np.searchsorted(columns.ravel()[expected], np.arange(n_words + 1))
    assert_array_equal(order, expected)
    assert_array_equal(documents, expected // 32)
    assert_array_equal(np.stack([firsts, lasts]), np.stack([ends[:-1], ends[1:]]))
