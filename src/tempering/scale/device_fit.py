"""A whole fit of topics on the device: between steps they never leave it.

The loop of Algorithm 1, for temperatures that follow a schedule. The host decides which documents
come next and how hot it is, and runs ahead of the device by a step or two.
"""

from __future__ import annotations

import math
import time
from collections import deque
from typing import Any

import numpy as np

from tempering.inference import ArraySource, History, Record, Result, RobbinsMonro
from tempering.inference.learning_rate import LearningRate
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.topics import Topics
from tempering.scale.device_corpus import on_device, place_corpus
from tempering.scale.device_steps import DeviceSteps, Scalars, Sizes, device_steps
from tempering.scale.groups import cut_into_groups
from tempering.scale.jax_device import require_jax
from tempering.scale.jax_functions import pad_topics
from tempering.scale.solver import GROUP_SIZES, Kernel, default_kernel, settings_of
from tempering.temperature import Annealing, Untempered
from tempering.temperature.policy import Progress

#: Steps that the host may be ahead of the device.
STEPS_AHEAD = 2


def fit_on_device(
    model: LatentDirichlet,
    data: Any,
    *,
    temperature: Untempered | None = None,
    learning_rate: LearningRate | None = None,
    batch_size: int | None = None,
    max_passes: float = 10,
    seed: int = 0,
    initial: Topics | None = None,
    resident: bool | None = None,
    kernel: Kernel | None = None,
) -> Result:
    """Fit topics by annealed stochastic variational inference, all on one device.

    Parameters
    ----------
    model : LatentDirichlet
        The topic model, with given priors.
    data : CSR matrix [N, V]
        Counts.
    temperature : Untempered or Annealing, optional
        A temperature that follows a schedule; T = 1 throughout by default. Learned temperatures
        need :func:`tempering.fit` with a :class:`tempering.scale.jax_lda.JaxLatentDirichlet`.
    learning_rate : callable, optional
        Step t = 1, 2, … to ρ_t; (16 + t)^−0.7 by default.
    batch_size : int, optional
        Documents of a minibatch; all of them by default.
    max_passes : float
        Passes over the data.
    seed : int
        The same seed gives the same bits on the same device. Batches are those of
        :func:`tempering.fit` with this seed.
    initial : Topics, optional
        λ at step 0; drawn on the device by default.
    resident : bool, optional
        Keep the corpus in the memory of the device; by default, if it fits.
    kernel : {"pallas", "plain"}, optional
        GPU kernels or plain JAX; by default the kernels where there is a GPU.

    Returns
    -------
    Result
        As of :func:`tempering.fit`; the history holds no bounds.
    """
    require_jax()
    temperature = Untempered() if temperature is None else temperature
    check_arguments(model, data, temperature, max_passes)
    kernel = kernel or default_kernel()
    rates = learning_rate or RobbinsMonro(16.0, 0.7)
    started = time.perf_counter()
    corpus, lengths = place_corpus(data, resident), np.diff(data.indptr)
    source = ArraySource(np.arange(data.shape[0]), batch_size)
    group_size = min(GROUP_SIZES[kernel], source.batch_size)
    steps = steps_of(model, kernel)
    alpha = on_device(pad_topics(model.doc_topic_prior, 1.0))
    run_seed = int(np.random.SeedSequence(seed).generate_state(1)[0])
    if initial is None:
        topics = steps.draw(run_seed & 0x7FFFFFFF)
    else:
        topics = on_device(pad_topics(initial.parameters(), 1.0))
    log_rows = steps.table(topics)
    batches = source.batches(run_seed)
    heat = tempered_heat = temperature.begin(model, source.size, np.random.default_rng(run_seed))
    history, unfinished, seen = History(), deque(), 0

    while seen < max_passes * source.size:
        rows = next(batches).data
        heat = temperature.cool(
            heat, Progress(seen / source.size, rows.size / source.size, max_passes)
        )
        tempered_heat = tempered_heat if heat.finished else heat
        s, rate = float(heat.inverse_temperature), rates(len(history) + 1)
        prior_weight = 1.0 if heat.finished else temperature.prior_weight(heat)

        scalars = np.array(
            Scalars(s, rate, source.size / rows.size, prior_weight * model.topic_word_prior),
            np.float32,
        )
        statistics = sweeps = None
        for group in cut_into_groups(lengths, rows, group_size):
            rectangle = corpus.rectangle(group)
            statistics, sweeps = steps.solve(rectangle, scalars, log_rows, alpha, statistics)
        topics, log_rows = steps.blend(topics, statistics, scalars)

        seen += rows.size
        unfinished.append(sweeps)
        while len(unfinished) > (STEPS_AHEAD if seen < max_passes * source.size else 0):
            unfinished.popleft().block_until_ready()
        history.append(
            Record(
                step=len(history),
                passes=seen / source.size,
                data_seen=seen,
                temperature=1.0 / s,
                inverse_temperature=s,
                learning_rate=rate,
                tempered_elbo=math.nan,
                elbo=math.nan,
                seconds=time.perf_counter() - started,
                phase="final" if heat.finished else "tempered",
                weights=None,
            )
        )

    parameters = np.asarray(topics)[:, : model.n_topics]
    posterior = Topics(parameters, model.topic_word_prior)
    return Result(posterior, math.nan, history, False, tempered_heat, model)


def steps_of(model: LatentDirichlet, kernel: Kernel) -> DeviceSteps:
    """The compiled parts for this model."""
    mean_topics = model.update != "variational"
    sizes = Sizes(model.n_words, model.n_topics, mean_topics, settings_of(model), kernel)
    return device_steps(sizes)


def fits_on_device(model: LatentDirichlet, temperature: Untempered) -> bool:
    """Whether nothing has to be learned but topics, so that :func:`fit_on_device` will do."""
    learns_priors = model.learn_doc_topic_prior or model.learn_topic_word_prior
    return follows_schedule(temperature) and not learns_priors


def follows_schedule(temperature: Untempered) -> bool:
    """Whether the temperature is known beforehand."""
    if isinstance(temperature, Annealing):
        return temperature.start is None
    return type(temperature) is Untempered


def check_arguments(
    model: LatentDirichlet, data: Any, temperature: Untempered, max_passes: float
) -> None:
    """Refuse what needs the engine on the host."""
    model.check(data)
    if not follows_schedule(temperature):
        raise ValueError(
            f"temperature={temperature} is learned from the data: use tempering.fit with a "
            "JaxLatentDirichlet, or an Annealing with a given schedule."
        )
    if model.learn_doc_topic_prior or model.learn_topic_word_prior:
        raise ValueError(
            "A fit on the device takes the priors as given: use tempering.fit with a "
            "JaxLatentDirichlet to learn them."
        )
    if not temperature.length(max_passes) < max_passes:
        raise ValueError(
            f"{temperature} leaves no phase at T = 1 in a run of max_passes={max_passes}: raise "
            "max_passes, or shorten the tempered part."
        )
