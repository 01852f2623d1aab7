"""Latent Dirichlet allocation whose local steps run in JAX: on a GPU, a TPU or the CPU.

It is the same model behind the same contract, so it runs under every temperature policy, with
history, checkpoints and resumption. :func:`tempering.scale.device_fit.fit_on_device` is faster
where the temperature follows a schedule, as it keeps the topics on the device.
"""

from __future__ import annotations

import numpy as np

from tempering.inference.portable_classes import lda_codec, make_portable
from tempering.models.base import Array
from tempering.models.lda.gibbs import as_tokens
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.steps import Documents, Solved
from tempering.models.lda.topic_rows import TopicExpectations
from tempering.models.lda.topics import Float32
from tempering.scale.groups import cut_into_groups, fill_rectangle, ladder_step
from tempering.scale.jax_functions import NEVER, pad_topics
from tempering.scale.recasting import recast
from tempering.scale.solver import (
    GROUP_SIZES,
    Kernel,
    compiled_sampler,
    compiled_solver,
    default_kernel,
    settings_of,
)


class JaxLatentDirichlet(LatentDirichlet):
    """:class:`tempering.models.lda.model.LatentDirichlet` with the E-step in JAX.

    Its sums agree with those of the CPU kernels to rounding in float32. With the GPU kernels they
    have the same bits from run to run on one device.
    """

    #: A device wants many documents at a time.
    shard_size = 16_384

    #: Which code runs the groups; None for the best that the device can.
    kernel: Kernel | None = None

    def on_cpu(self) -> LatentDirichlet:
        """The same model with the kernels of the CPU, for what comes after a fit."""
        return recast(self, LatentDirichlet)

    def solve(
        self,
        documents: Documents,
        log_rows: Float32,
        inverse_temperature: float | Array,
        gamma: Float32 | None,
    ) -> Solved:
        return self._in_groups(documents, log_rows, inverse_temperature, gamma)

    def sample(self, documents: Documents, expectations: TopicExpectations) -> Solved:
        log_rows = np.float32(self.word_power) * expectations.log_rows(documents.words)
        return self._in_groups(documents, log_rows, 1.0, None, sampled=True)

    def _in_groups(
        self,
        documents: Documents,
        log_rows: Float32,
        inverse_temperature: float | Array,
        gamma: Float32 | None,
        *,
        sampled: bool = False,
    ) -> Solved:
        """γ and statistics of documents, group by group."""
        kernel = self.kernel or default_kernel()
        solve = compiled_sampler(kernel) if sampled else compiled_solver(kernel, settings_of(self))
        n_documents, n_used = documents.indptr.size - 1, log_rows.shape[0]
        alpha = np.asarray(self.doc_topic_prior, np.float32)
        table = np.zeros((ladder_step(n_used), self.n_topics), np.float32)
        table[:n_used] = log_rows
        table, padded_alpha = pad_topics(table, NEVER), pad_topics(alpha, 1.0)
        temperatures = np.broadcast_to(np.asarray(inverse_temperature, np.float32), n_documents)
        size = min(GROUP_SIZES[kernel], ladder_step(n_documents))
        matrix = (documents.indptr, documents.columns, documents.counts)
        lengths = np.diff(documents.indptr)
        if sampled:  # a chain has a place for each token
            tokens = as_tokens(*matrix[:2], documents.counts.astype(np.int64))
            lengths = np.diff(tokens.first_tokens)
        solved_gamma = np.tile(alpha, (n_documents, 1))
        statistics = np.zeros((n_used, self.n_topics), np.float32)
        for group in cut_into_groups(lengths, np.arange(n_documents), size):
            n = group.rows.size
            words = fill_rectangle(*matrix, group, table.shape[0])
            s = np.ones(group.size, np.float32)
            s[:n] = temperatures[group.rows]
            totals = words.counts.sum(axis=1, keepdims=True)
            mass = np.repeat(totals / self.n_topics, self.n_topics, axis=1)
            if gamma is not None:
                mass[:n] = (gamma[group.rows] - alpha) / s[:n, None] * (totals[:n] > 0)
            start = () if sampled else (s, pad_topics(mass, 0.0))
            solved = solve(*words, *start, table, padded_alpha)
            solved_gamma[group.rows] = np.asarray(solved.gamma)[:n, : self.n_topics]
            statistics += np.asarray(solved.statistics)[:n_used, : self.n_topics]
        return Solved(solved_gamma, statistics)


make_portable(JaxLatentDirichlet, "jax_latent_dirichlet", *lda_codec(JaxLatentDirichlet))
