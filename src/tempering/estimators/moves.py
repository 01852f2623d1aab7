"""A fit with moves: new starts from where a fit has come to, kept only if they lead higher.

Here are also those of the factorial mixture. Two features span four sums, 0, m_j, m_k, m_j + m_k. A
pair such as a + b/3 and 2b/3 − a spans nearly those of the true a and b, and coordinate ascent
cannot leave it; other generators of the same sums, m_j and m_j + m_k for instance, can. It shows in
activations that depend on each other: such pairs get other generators, and a feature that explains
next to nothing gets what the others leave over. Each candidate is tried on a sample first.
"""

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from tempering.gpu.device_data import TableSource
from tempering.gpu.jax_device import Backend, choose_backend
from tempering.gpu.jax_factorial import JaxFactorialModel
from tempering.gpu.jax_models import JaxHiddenMarkov, JaxMixture
from tempering.inference import Algorithm, Batch, Constant, History, Result, fit
from tempering.inference.checkpoint import part_of
from tempering.inference.executors import Executor, Serial, open_executor
from tempering.inference.fitting import FitOptions
from tempering.models import HiddenMarkov, Mixture, Model, Natural
from tempering.models.base import Array
from tempering.models.compilation import working_seconds
from tempering.models.factorial_mixture import FactorialModel
from tempering.temperature import USUAL_PASSES, TemperaturePolicy, Untempered

#: Passes before the first round, and after each: enough to see where a move leads.
SETTLING_PASSES = 15


@dataclass(frozen=True, repr=False)
class MovedResult(Result):
    """A result, and how many rounds of each move were kept; its history leaves out the others."""

    accepted: Mapping[str, int] = field(default_factory=dict)


#: A new start from where a fit has come to, of model, data, λ and an executor; None where there is
#: none to try.
Move = Callable[[Any, Array, Natural, Executor], Natural | None]


def fit_with_moves(
    model: Model, data: Array, *, moves: Mapping[str, Move], **options: Unpack[FitOptions]
) -> MovedResult:
    """:func:`tempering.fit` in batch mode, with moves once T = 1, each as long as the ELBO rises.

    A tempered fit runs to its end before them; an untempered one only settles. The last phase is
    coordinate ascent to convergence. ``max_passes`` counts the passes of all phases.
    """
    started = working_seconds()
    phases = count()

    temperature = options.pop("temperature", None)
    max_passes = int(options.get("max_passes") or USUAL_PASSES)
    n_threads = options.get("n_threads")

    def run(model: Model, initial: Any, passes: int, policy: TemperaturePolicy | None) -> Result:
        # Each phase in a checkpoint of its own. Moves draw no random number, so a fit that goes on
        # from a checkpoint comes to the same phases.
        own: Any = {"checkpoint": part_of(options.get("checkpoint"), f"phase-{next(phases)}")}
        own |= {"initial": initial, "max_passes": passes, "temperature": policy}
        return fit(model, data, **{**options, **own})

    settles = temperature is None or isinstance(temperature, Untempered)
    passes = min(max_passes, SETTLING_PASSES) if settles else max_passes
    first = run(model, options.get("initial"), passes, temperature)
    best = MovedResult(**vars(first), accepted=dict.fromkeys(moves, 0))
    for name, move in moves.items():
        while best.accepted[name] < 10 and (left := _passes_left(best, max_passes)):
            with open_executor(None, n_threads) as executor:
                moved = move(best.model, data, best.posterior, executor)
            if moved is None:
                break
            began = working_seconds() - started
            tried = run(best.model, moved, min(SETTLING_PASSES, left), None)
            if not tried.elbo > best.elbo + 1e-6 * data.shape[0]:  # in nats a datum
                break
            accepted = {**best.accepted, name: best.accepted[name] + 1}
            best = replace(_continued(best, tried, began), accepted=accepted)
    if not best.converged and (left := _passes_left(best, max_passes)):
        began = working_seconds() - started
        best = _continued(best, run(best.model, best.posterior, left, None), began)
    return best


def _passes_left(result: Result, max_passes: int) -> int:
    # A short tempered fit may take a pass more, to end at T = 1.
    return max(0, max_passes - int(np.ceil(result.history[-1].passes)))


def _continued(earlier: MovedResult, later: Result, began: float) -> MovedResult:
    """The later result, its history set behind the earlier one's."""
    last = earlier.history[-1]
    shifted = [
        record._replace(
            step=record.step + last.step + 1,
            passes=record.passes + last.passes,
            data_seen=record.data_seen + last.data_seen,
            seconds=record.seconds + began,
        )
        for record in later.history
    ]
    taken = {name: getattr(later, name) for name in ("posterior", "elbo", "converged", "model")}
    history = History([*earlier.history, *shifted])
    warnings = tuple(dict.fromkeys(earlier.warnings + later.warnings))
    return replace(earlier, **taken, history=history, restart_elbos=[later.elbo], warnings=warnings)


#: The models that run on a device, as they do there, and how many entries the matrices have that a
#: datum, or a row of a sequence, is multiplied with.
ON_DEVICE: dict[type, tuple[Any, Callable[[Any], int]]] = {
    FactorialModel: (JaxFactorialModel, lambda model: model.n_features * model.dimension),
    HiddenMarkov: (
        JaxHiddenMarkov,
        lambda model: (
            model.n_components * (model.likelihood.conjugate.size + 2 * model.n_components)
        ),
    ),
    Mixture: (JaxMixture, lambda model: model.n_components * model.likelihood.conjugate.size),
}


def model_on(backend: Backend, model: Model, n_data: int) -> Any:
    """The model as it runs on a backend, for so many data; an error if that is not there."""
    there, products_a_datum = ON_DEVICE[type(model)]
    # With the tens of passes of a fit some seconds of work for the CPU, as many as it takes to load
    # JAX and to compile.
    worthwhile = backend != "auto" or n_data * products_a_datum(model) >= 1e9
    on_device = choose_backend(backend, worthwhile=worthwhile) != "numba"
    return there.of(model) if on_device else model


def on_cpu(model: Any) -> Any:
    """The model as it serves after a fit: anywhere."""
    return model.on_cpu() if hasattr(model, "on_cpu") else model


def fit_table(
    model: Model,
    data: Array,
    *,
    backend: Backend,
    moves: Mapping[str, Move] | None = None,
    **options: Unpack[FitOptions],
) -> Result:
    """:func:`tempering.fit`, or a fit with moves, on a backend."""
    moves = dict(moves or {})
    model = model_on(backend, model, data.shape[0])
    source: Any = data
    if on_cpu(model) is not model:
        source = TableSource(data, options.get("batch_size"))
        moves = {name: partial(_on_host, move) for name, move in moves.items()}
    if moves:
        result = fit_with_moves(model, source, moves=moves, **options)
    else:
        result = fit(model, source, **options)
    return replace(result, model=on_cpu(result.model))


def _on_host(move: Move, model: Any, data: Any, posterior: Natural, executor: Any) -> Any:
    """A move that looks at the table, and runs the model, on the host."""
    return move(on_cpu(model), data.data, posterior, executor)


def move_features(
    model: FactorialModel, data: Array, posterior: Natural, executor: Executor
) -> Natural | None:
    """λ with other features; None where nothing promises a higher ELBO."""
    candidates = list(candidate_features(model, data, posterior))
    if not candidates:
        return None
    sample = _sample(data, model.n_features)
    # What was learned stays as it is, for candidates are compared.
    still = copy(model)
    still.learn = frozenset()

    def sketches(passes: int, starts: list[Natural]) -> list[tuple[float, Natural]]:
        return executor.map(lambda start: _sketch(still, sample, start, passes), starts)

    def features_at(means: Array, n_data: int) -> Natural:
        """As sure of themselves as at the start of a fit."""
        return model.features_at(means, n_data * model.activation_probability)

    first = sketches(3, [features_at(means, len(sample)) for means in candidates])
    promising = sorted(first, key=lambda sketch: -sketch[0])[:4]
    prior = model.prior()
    unmoved = prior + len(sample) / len(data) * (posterior + -1.0 * prior)
    (stayed, _), *moved = sketches(15, [unmoved, *(there for _, there in promising)])
    elbo, best = max(moved, key=lambda sketch: sketch[0])
    if not elbo > stayed:
        return None
    return features_at(model.expectations(best).means, len(data))


def candidate_features(model: FactorialModel, data: Array, posterior: Natural) -> Iterator[Array]:
    """Features [K, D] that differ from those of the posterior in one or two rows."""
    means = model.expectations(posterior).means
    moments = (posterior.precision - model.prior().precision) / len(data)
    for j, k in dependent_pairs(moments, len(data)):
        a, b = means[j], means[k]
        # Pairs that span two or three of the sums 0, a, b, a + b.
        for pair in [(a, a + b), (b, a + b), (a, b - a), (b, a - b), (a + b, -a), (a + b, -b)]:
            yield _replaced(means, [j, k], pair)
    explained = np.diag(moments) * np.square(means).sum(axis=1) / (2 * model.noise_variance)
    weakest = int(explained.argmin())
    if explained[weakest] < 0.01:  # nats a datum, roughly: it is of no use
        yield means  # surer of themselves again, which may be enough
        for feature in _left_over(model, _sample(data, len(means)), posterior):
            yield _replaced(means, [weakest], feature)


def dependent_pairs(moments: Array, n_data: int) -> list[tuple[int, int]]:
    """Pairs of features with dependent activations, by N times their mutual information."""
    both, rates = moments, np.diag(moments)
    one = np.broadcast_to(rates[:, None], both.shape)
    tables = [
        (both, one * one.T),
        (one - both, one * (1 - one.T)),
        (one.T - both, (1 - one) * one.T),
        (1 - one - one.T + both, (1 - one) * (1 - one.T)),
    ]
    information = np.zeros(both.shape)
    for joint, apart in tables:
        joint, apart = np.maximum(joint, 0.0), np.maximum(apart, 1e-300)
        information += xlogy(joint, joint) - xlogy(joint, apart)
    j, k = np.triu_indices(len(rates), 1)
    found = n_data * information[j, k]
    order = np.argsort(-found, kind="stable")[:6]
    # By fewer nats chance alone makes them dependent.
    return [(int(j[i]), int(k[i])) for i in order if found[i] > 10.0]


def _left_over(model: FactorialModel, sample: Array, posterior: Natural) -> list[Array]:
    """What the features do not explain: its mean on each side of the widest direction."""
    expected = model.expectations(posterior)
    residuals = sample - model.local_step(sample, expected, 1.0).activations @ expected.means
    lengths = np.einsum("nd,nd->n", residuals, residuals)
    direction = residuals[lengths.argmax()]
    for _ in range(10):  # the power method
        direction = residuals.T @ (residuals @ direction)
        direction = direction / max(np.linalg.norm(direction), 1e-300)
    side = residuals @ direction
    weights = [np.maximum(side, 0.0), np.maximum(-side, 0.0)]
    return [weight @ residuals / weight.sum() for weight in weights if weight.any()]


def _replaced(means: Array, rows: list[int], features: ArrayLike) -> Array:
    changed = means.copy()
    changed[rows] = features
    return changed


def _sample(data: Array, n_features: int) -> Array:
    """Rows at even distances, about a tenth: no random number is drawn."""
    rows = np.clip(len(data) // 10, max(250, 4 * n_features), 1000)
    return data[:: -(-len(data) // int(rows))]


def _sketch(
    model: FactorialModel, sample: Array, start: Natural, passes: int
) -> tuple[float, Natural]:
    """The ELBO and λ to which some passes over the sample lead."""
    n = len(sample)
    algorithm = Algorithm(model, Untempered(), Constant(), Serial(), n, passes, continues=True)
    state, elbo = algorithm.start(start, np.random.default_rng(0)), -np.inf
    for _ in range(passes):
        state, _, _, elbo = algorithm.advance(state, Batch(sample))
    return elbo, state.posterior
