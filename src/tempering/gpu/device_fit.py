"""A whole fit of topics on the device: between steps they never leave it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tempering.gpu.device_corpus import CorpusSource, CorpusStream
from tempering.gpu.device_lda import DeviceLatentDirichlet, steps_of
from tempering.gpu.device_topics import DeviceTopics
from tempering.gpu.jax_device import require_jax
from tempering.gpu.recasting import with_learned
from tempering.gpu.solver import Kernel, default_kernel
from tempering.inference import Algorithm, BlockSource, Result, RobbinsMonro, State, fit
from tempering.inference.callbacks import Callback
from tempering.inference.checkpoint import CheckpointLike
from tempering.inference.learning_rate import LearningRate
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.topics import Topics
from tempering.temperature import TemperaturePolicy

__all__ = ["advance_on_device", "fit_on_device", "steps_of"]


def fit_on_device(
    model: LatentDirichlet,
    data: Any,
    *,
    temperature: TemperaturePolicy | None = None,
    learning_rate: LearningRate | None = None,
    batch_size: int | None = None,
    max_passes: float = 10,
    seed: int = 0,
    initial: Topics | None = None,
    n_init: int = 1,
    elbo_every: int = 10**9,
    final_elbo: bool = False,
    callbacks: Sequence[Callback] = (),
    progress: bool = False,
    checkpoint: CheckpointLike = None,
    resume: bool = True,
    resident: bool | None = None,
    kernel: Kernel | None = None,
    **engine_options: Any,
) -> Result:
    """Fit topics by tempered stochastic variational inference, all on one device.

    Parameters
    ----------
    model : LatentDirichlet
        The topic model.
    data : CSR matrix [N, V] or BlockSource
        Counts, in memory or on disk; then with minibatches of their own ``batch_size``.
    temperature : TemperaturePolicy, optional
        The temperature policy; T = 1 throughout by default. Where temperatures are learned, and
        where priors are, the host waits for the device each time.
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
    n_init : int
        Restarts; the one with the best ELBO is kept.
    elbo_every : int
        Steps between two evaluations of the ELBO for the history; by default only the first step
        has one, as it takes longer than a step. Only ``update="variational"`` ascends one.
    final_elbo : bool
        Compute the ELBO of the result over all data.
    callbacks : sequence of callables
        Each is called with a ``Report`` after each step; a true return value ends the run. Its
        posterior stays on the device until ``posterior.parameters()`` is called.
    progress : bool
        Show a progress bar when standard error is a terminal.
    checkpoint, resume
        As of :func:`tempering.fit`. A fit that is taken up again ends in the same bits on the same
        device.
    resident : bool, optional
        Keep the corpus in the memory of the device; by default, if it fits. Otherwise it is sent
        batch by batch while the device computes, with the same result.
    kernel : {"pallas", "plain"}, optional
        GPU kernels or plain JAX; by default the kernels where there is a GPU.
    **engine_options
        What else :func:`tempering.fit` takes.

    Returns
    -------
    Result
        As of :func:`tempering.fit`, with its topics on the host.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from tempering.gpu import fit_on_device
    >>> from tempering.models.lda.model import LatentDirichlet
    >>> counts = sparse.csr_matrix(np.repeat([[4, 3, 0, 0], [0, 0, 5, 4]], 50, axis=0))
    >>> result = fit_on_device(LatentDirichlet(2, 4, 0.5, 0.5), counts, max_passes=5)
    >>> result.posterior.shape
    (4, 2)
    """
    require_jax()
    streamed = isinstance(data, BlockSource)
    if not streamed:
        model.check(data)
    on_device = DeviceLatentDirichlet.of(model, kernel or default_kernel())
    start = None if initial is None else DeviceTopics.of(initial)
    source = CorpusStream(data) if streamed else CorpusSource(data, batch_size, resident)
    result = fit(
        on_device,
        source,
        temperature=temperature,
        learning_rate=learning_rate or RobbinsMonro(16.0, 0.7),
        max_passes=max_passes,
        seed=seed,
        initial=start,
        n_init=n_init,
        elbo_every=elbo_every,
        final_elbo=final_elbo,
        callbacks=callbacks,
        progress=progress,
        checkpoint=checkpoint,
        resume=resume,
        **{"n_threads": 1, **engine_options},
    )
    fitted = with_learned(model, result.model)
    return replace(result, posterior=result.posterior.host, model=fitted)


def advance_on_device(algorithm: Algorithm, state: State, data: Any, batch_size: int) -> State:
    """More documents of a stream, in minibatches; before and after, the topics are on the host.

    Parameters
    ----------
    algorithm : Algorithm
        With a model of the host, which learns priors from the stream if it is to.
    state : State
        Where the stream is.
    data : CSR matrix
        Its next documents.
    batch_size : int
        Documents of a minibatch.
    """
    model = algorithm.model
    assert isinstance(model, LatentDirichlet)
    on_device = DeviceLatentDirichlet.of(model, default_kernel())
    algorithm = replace(algorithm, model=on_device)
    state = state._replace(posterior=DeviceTopics.of(state.posterior))
    source = CorpusSource(data, batch_size, resident=False)
    for start in range(0, source.size, batch_size):
        batch = source.rows(np.arange(start, min(start + batch_size, source.size)))
        state = algorithm.advance(state, batch, evaluate=False).state
    vars(model).update(vars(with_learned(model, on_device)))
    return state._replace(posterior=state.posterior.host)
