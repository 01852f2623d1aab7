"""A whole fit of topics on the device: between steps they never leave it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from tempering.gpu.compiled_steps import Kernel, default_kernel
from tempering.gpu.device_corpus import CorpusSource, CorpusStream
from tempering.gpu.device_lda import DeviceLatentDirichlet
from tempering.gpu.device_topics import DeviceTopics
from tempering.gpu.jax_device import require_jax, with_attributes_of
from tempering.inference import Algorithm, BlockSource, Result, RobbinsMonro, fit
from tempering.inference.fitting import FitOptions
from tempering.inference.run import State
from tempering.models.base import UnsupportedTemperature
from tempering.models.lda.model import LatentDirichlet
from tempering.temperature import AdaptiveTempering


def fit_on_device(
    model: LatentDirichlet,
    data: Any,
    *,
    resident: bool | None = None,
    kernel: Kernel | None = None,
    **options: Unpack[FitOptions],
) -> Result:
    """Fit topics by tempered stochastic variational inference, all on the device.

    Where there are several, all of them take part, unless ``jax.default_device`` names one. The
    GPU kernels give the bits of one device on any number of them. The topics that come back are on
    the host.

    Parameters
    ----------
    model : LatentDirichlet
        The topic model.
    data : CSR matrix [N, V] or BlockSource
        Counts, in memory or on disk; then with minibatches of their own ``batch_size``.
    resident : bool, optional
        Keep the corpus in the memory of the device; by default, if it fits. Otherwise it is sent
        batch by batch while the device computes, with the same result.
    kernel : {"pallas", "plain"}, optional
        GPU kernels or plain JAX; by default the kernels where there is a GPU.
    **options
        As of :func:`tempering.fit`, with other defaults: ρ_t = (16 + t)^−0.7, ten passes, no
        progress bar, and an ELBO at the first step alone, as it takes longer than a step.

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
    if isinstance(options.get("temperature"), AdaptiveTempering):
        raise UnsupportedTemperature(
            "AdaptiveTempering looks at documents on the CPU: take backend='cpu', or on the device "
            "a schedule, such as tempering.Annealing(tempering.schedules.linear_inverse(2.0))."
        )
    streamed = isinstance(data, BlockSource)
    if not streamed:
        model.check(data)
    batch_size, initial = options.pop("batch_size", None), options.pop("initial", None)
    settings: FitOptions = {
        "max_passes": 10,
        "n_threads": 1,
        "elbo_every": 10**9,
        "final_elbo": False,
        "progress": False,
        **options,
        "learning_rate": options.get("learning_rate") or RobbinsMonro(16.0, 0.7),
        "initial": None if initial is None else DeviceTopics.of(initial),
    }
    on_device = DeviceLatentDirichlet.of(model, kernel or default_kernel())
    source = CorpusStream(data) if streamed else CorpusSource(data, batch_size, resident)
    result = fit(on_device, source, **settings)
    fitted = with_attributes_of(result.model, model)
    return replace(result, posterior=result.posterior.host, model=fitted)


def advance_on_device(algorithm: Algorithm, state: State, data: Any, batch_size: int) -> State:
    """More documents of a stream, in minibatches; before and after, the topics are on the host."""
    model = algorithm.model
    assert isinstance(model, LatentDirichlet)
    on_device = DeviceLatentDirichlet.of(model, default_kernel())
    algorithm = replace(algorithm, model=on_device)
    state = state._replace(posterior=DeviceTopics.of(state.posterior))
    source = CorpusSource(data, batch_size, resident=False)
    for start in range(0, source.size, batch_size):
        batch = source.rows(np.arange(start, min(start + batch_size, source.size)))
        state = algorithm.advance(state, batch, evaluate=False).state
    vars(model).update(vars(with_attributes_of(on_device, model)))
    return state._replace(posterior=state.posterior.host)
