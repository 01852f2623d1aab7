"""Sampled topics in fits that stay on the device."""

from copy import deepcopy
from typing import Any, cast

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

pytest.importorskip("jax")

from tempering import Annealing, Checkpoint, LatentDirichletAllocation, schedules
from tempering.datasets import make_lda
from tempering.gpu.compiled_steps import steps_of
from tempering.gpu.device_data import CorpusSource, DeviceCorpus
from tempering.gpu.device_lda import DeviceLatentDirichlet, fit_on_device
from tempering.gpu.device_topics import DeviceTopics
from tempering.inference import RobbinsMonro
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.sampling import can_be_sampled
from tempering.models.lda.topics import Topics

DATA = sparse.csr_matrix(make_lda(120, 5, 200, 30.0, seed=1).counts)
RUN = {
    "temperature": Annealing(schedules.linear_inverse(2.0), fraction=0.5),
    "learning_rate": RobbinsMonro(16.0, 0.7),
    "batch_size": 40,
    "max_passes": 2,
    "seed": 3,
}


def new_model(update: Any = "sampled"):
    return LatentDirichlet(5, 200, 0.1, 0.1, update=update)


def parameters(data: Any = DATA, update: Any = "sampled", **changes: Any):
    return fit_on_device(new_model(update), data, **{**RUN, **changes}).posterior.parameters()


def test_the_same_bits_again_kept_or_sent_and_nothing_is_compiled_again():
    first, sent = parameters(), parameters(resident=False)
    n_compiled = steps_of(new_model(), "plain").n_compiled()
    assert_array_equal(first, sent)
    assert_array_equal(first, parameters())
    # Batches of other lengths.
    for resident in (True, False):
        assert np.any(first != parameters(seed=4, resident=resident))
    assert steps_of(new_model(), "plain").n_compiled() == n_compiled


def test_another_corpus_of_about_that_size_compiles_nothing():
    parameters()
    n_compiled = steps_of(new_model(), "plain").n_compiled()
    smaller = sparse.vstack([DATA[:-1], 0 * DATA[-1:]], format="csr")
    smaller.eliminate_zeros()
    assert smaller.nnz < DATA.nnz
    parameters(smaller)
    assert steps_of(new_model(), "plain").n_compiled() == n_compiled


@pytest.mark.parametrize("resident", [True, False])
def test_zeros_that_are_stored_are_no_words(resident):
    """The width of a rectangle is that of its tokens: such zeros would not fit in."""
    n = DATA.shape[0]
    zeros = sparse.csr_matrix(
        (np.zeros(150 * n), np.tile(np.arange(150), n), 150 * np.arange(n + 1))
    )
    parts = [
        np.concatenate([part[start : start + 150], own[first:last]])
        for part, own in ((zeros.data, DATA.data), (zeros.indices, DATA.indices))
        for start, first, last in zip(zeros.indptr, DATA.indptr, DATA.indptr[1:])
    ]
    values, columns = np.concatenate(parts[:n]), np.concatenate(parts[n:])
    padded = sparse.csr_matrix((values, columns, zeros.indptr + DATA.indptr), DATA.shape)
    assert_array_equal(parameters(padded, resident=resident), parameters(resident=resident))


def test_no_token_is_lost():
    rate = {"learning_rate": lambda step: 1.0}
    last = parameters(**rate, batch_size=120, temperature=None)
    assert_allclose(last.sum(), DATA.sum() + 0.1 * last.size, rtol=1e-5)
    assert_allclose(
        last.sum(axis=1) - 0.5, np.asarray(DATA.sum(axis=0)).ravel(), rtol=1e-3, atol=1e-3
    )


def test_only_steps_at_one_and_whole_counts_are_sampled():
    batch = next(iter(CorpusSource(DATA, 40).sweep())).data
    topics = DeviceTopics.of(new_model().initialize(cast(Any, None), np.random.default_rng(0)))
    models = [
        DeviceLatentDirichlet.of(new_model(update), "plain") for update in ("sampled", "mean")
    ]
    for s, equal in ((0.5, True), (1.0, False)):
        steps = [own.local_step(batch, own.expectations(topics), s) for own in models]
        one, other = (np.asarray(step.statistics.values) for step in steps)
        assert np.array_equal(one, other) == equal
    for data in (0.5 * DATA, 100.0 * DATA):
        assert_array_equal(parameters(data), parameters(data, update="mean"))


def test_words_enter_at_their_power_as_on_the_cpu():
    batch = next(iter(CorpusSource(DATA, 120).sweep())).data
    topics = Topics(np.random.default_rng(0).gamma(0.2, size=(200, 5)) + 0.1, 0.1)
    found = []
    for power in (1.0, 0.5):
        own = LatentDirichlet(5, 200, 0.1, 0.1, update="sampled", word_power=power)
        device = DeviceLatentDirichlet.of(own, "plain")
        placed = device.expectations(DeviceTopics.of(topics))
        on_device = np.asarray(device.local_step(batch, placed, 1.0).statistics.values)
        on_host = own.local_step(DATA, own.expectations(topics), 1.0).statistics
        found.append((on_device[on_host.words, :5], on_host.values))
    (sharp, sharp_host), (soft, soft_host) = found
    # The draws are others, so that numbers are not; but they are nearer than another power's.
    assert np.abs(sharp - sharp_host).sum() < np.abs(sharp - soft_host).sum()
    assert np.abs(soft - soft_host).sum() < np.abs(soft - sharp_host).sum()


def test_what_can_be_sampled_is_what_the_cpu_samples():
    counts = DATA.astype(np.float32)
    counts.data[counts.indptr[7]] = 0.5
    counts.data[counts.indptr[20] : counts.indptr[21]] = 4000.0
    source = CorpusSource(counts, 10)
    for batch in source.sweep():
        own = counts[batch.data.rows]
        assert batch.data.can_be_sampled == can_be_sampled(own.data)
    assert np.flatnonzero(np.isnan(DeviceCorpus(counts).tokens)).tolist() == [7]


def test_a_fit_that_is_taken_up_again_ends_in_the_same_bits(tmp_path):
    expected = parameters()

    class Stop(Exception):
        pass

    def stop(report):
        if report.record.step == 5:
            raise Stop

    checkpoint = Checkpoint(tmp_path, every_steps=1)
    with pytest.raises(Stop):
        parameters(checkpoint=checkpoint, callbacks=[stop])
    assert_array_equal(parameters(checkpoint=checkpoint), expected)


def test_the_default_of_the_estimator_stays_on_the_device():
    posteriors = set()
    lda = LatentDirichletAllocation(5, max_iter=2, batch_size=40, random_state=0, backend="jax")
    lda.fit(DATA, callbacks=[lambda report: posteriors.add(type(report.posterior))])
    assert posteriors == {DeviceTopics}


def test_the_sum_of_alpha_is_raised_as_on_the_host():
    data = make_lda(300, 5, 200, 60.0, alpha=1.0, seed=2)
    topics = Topics((1000 * data.topics + 0.1).T, 0.1)
    host = LatentDirichlet(
        5, 200, 0.05, 0.1, update="sampled", prior_documents=sparse.csr_matrix(data.counts)
    )
    device = DeviceLatentDirichlet.of(deepcopy(host), "plain")
    placed = DeviceTopics.of(topics)
    assert device.revise(placed, 0.44, 0.46) is placed
    host.revise(topics, 0.44, 0.46)
    assert host.doc_topic_prior.sum() >= 0.5
    assert_array_equal(device.doc_topic_prior, host.doc_topic_prior)
