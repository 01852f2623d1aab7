"""A first test for a model of one's own: does it keep what the engine relies on?"""

import math
import pickle
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np

from tempering.inference.fingerprint import describe, differences
from tempering.inference.sources import ArraySource
from tempering.models.arguments import check_number, check_whole, shown
from tempering.models.base import LocalStep, Model, UnsupportedTemperature, start_of
from tempering.models.natural import Natural, entry, permuted
from tempering.search.components import Components
from tempering.temperature.perturbation import fresh_start

try:  # What workers of a cluster are sent.
    from cloudpickle import dumps
except ImportError:
    from pickle import dumps

__all__ = ["check_model"]

#: Temperatures that are tried beside T = 1, and updates for which the bound must not fall.
HOT, UPDATES = 0.4, 20
#: Draws of β that tell log p(x | β).
DRAWS = 30
#: Data from which pushes make a start: off a saddle, and to find a hot temperature.
FEW = 2, 20


def check_model(model: Model, data: Any, *, seed: int = 0, tolerance: float = 1e-6) -> None:
    """Raise ``AssertionError`` if a model breaks the contract, with the first thing that it broke.

    Tried are: the kinds, parts and shapes of what the methods give, data, λ and expectations that
    stay as they are, random starts from few data, the divergence (0 at the prior, positive
    elsewhere), steps of two halves that add up to the step of the whole, one temperature for each
    datum, a bound that never falls (at T = 1 and above it), an optimum of q(z) (no other
    temperature gives a better bound), an ELBO that is below log p(x | β), steps that continue and
    global steps of its own where the model has them, normalisers that are 1 at T = 1 and log-convex
    in 1/T likewise, and pickling.

    Parameters
    ----------
    model : Model
        Stays as it is.
    data : array or CSR matrix
        One datum a row; some hundred are enough. Of a single one no halves are tried.
    seed : int
        For the start.
    tolerance : float
        Relative error that counts as rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import Mixture
    >>> from tempering.families import Dirichlet, Poisson
    >>> from tempering.testing import check_model
    >>> model = Mixture(Poisson(1), Dirichlet(2), [1.0, 1.0], [1.0, 0.1])
    >>> check_model(model, np.repeat([[2], [20]], 50, axis=0))
    """
    if not isinstance(model, Model):
        raise ValueError(f"model must be a tempering.Model; got {shown(model)}.")
    check_whole(0, seed=seed)
    check_number(tolerance, "tolerance", "0 or positive", least=0)
    source = ArraySource(data)
    rows = source.data
    model.check(rows)
    rng, shape = np.random.default_rng(seed), rows.shape
    before = rows.tobytes() if isinstance(rows, np.ndarray) else None
    prior = model.prior()
    # With a global step of its own, α and sums need not be like a λ.
    wanted = None if model.provides("global_step") else prior
    _check_parts(prior, prior, "prior()")
    left_out = [] if model.provides("divergence") else sorted({*prior} - {*model.families})
    _demand(
        not left_out,
        f"families must have the family of each part of λ; it lacks {', '.join(left_out)}. Without "
        "one, its part of the divergence is missing.",
    )
    start = _tried("initialize", shape, lambda: start_of(model, source, rng).posterior)
    _check_parts(wanted, start, "λ of initialize")
    if wanted is not None:
        _tried("initialize", shape, lambda: model.check_posterior(start), "λ must be proper.")
    given = deepcopy(start)
    expected = _tried("expectations", shape, lambda: model.expectations(start))
    local = _tried("local_step", shape, lambda: model.local_step(rows, expected, HOT))
    # Batches are views of what a fit is given, so later steps, and the caller, would see it.
    _demand(
        before is None or rows.tobytes() == before,
        "initialize and local_step must not write into the data: take a copy there.",
    )
    _demand(
        isinstance(local, LocalStep), f"local_step must return a LocalStep; got {shown(local)}."
    )
    _demand(
        local.n == shape[0],
        f"local_step must give one energy for each of {shape[0]} data; got {local.n}.",
    )
    _check_temperature(local, HOT)
    _check_parts(wanted, local.statistics, "the statistics of local_step")
    _check_finite(local.energies, "the energies of local_step")
    _check_finite(local.entropy, "the entropy of local_step")
    _check_starts(model, rows, wanted, seed)
    close = partial(_close, tolerance=tolerance)

    if wanted is not None:
        at_prior = _divergence(model, prior)
        close(at_prior, 0.0, "divergence(prior()) must be 0: KL(p ‖ p)", scale=1.0)
    divergence = _divergence(model, start)
    _demand(
        divergence > -tolerance,
        f"divergence(λ) must not be negative; got {divergence:.6g} at the start. Is it KL(q ‖ p)?",
    )
    if wanted is None:
        still = _divergence(model, model.global_step(deepcopy(start), prior, 0.0))
        close(still, divergence, "global_step at rate 0 must leave λ as it is: its KL", scale=1.0)
    _check_sums(model, rows, start, close)
    for s in (1.0, HOT):
        if model.continues_steps or model.provides("continue_local_step"):
            _check_continuing(model, rows, start, s, tolerance)
        _check_ascent(model, rows, start, s, tolerance)
        _check_optimum(model, rows, start, s, tolerance)
    if model.provides("local_log_normalizer"):
        _check_normalizers(model, rows, start, close)
    if model.provides("log_likelihood") and (model.families or model.provides("draw")):
        _check_likelihood(model, rows, start, rng)
    if model.components:
        _check_components(model, rows, start, close)
    with suppress(UnsupportedTemperature):
        at_one = model.log_partition(np.array([1.0]), rows.shape[0])
        close(at_one, 0.0, "log_partition at s = 1 must be 0: C(1) = 1", scale=1.0)
    try:
        copy = pickle.loads(dumps(model))
    except Exception as error:
        raise AssertionError(f"the model must be picklable, for workers: {error}") from error
    _same_step(_step(copy, rows, start, HOT), _step(model, rows, start, HOT), close, "a copy's")
    with suppress(TypeError):  # of an attribute that has no fixed state
        expected = copy.expectations(start)
        state = describe(vars(copy))
        copy.local_step(rows[:1], expected, 1.0)
        changed = differences(state, describe(vars(copy)))
        _demand(
            not changed,
            "local_step must not change the model, as threads solve shards side by side: "
            f"{'; '.join(changed)}.",
        )
    _demand(
        describe(start) == describe(given),
        "λ must stay as it is: a method has written into it. Take a copy there.",
    )


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


def _tried(method: str, shape: tuple[int, ...], call: Callable[[], Any], hint: str = "") -> Any:
    try:
        return call()
    except Exception as error:
        cause = f"{type(error).__name__}: {error}".rstrip(". ")
        where = f"(in {method}, with data of shape {shape})."
        raise AssertionError(f"{cause} {where} {hint}".rstrip()) from error


def _check_parts(prior: Any, found: Any, whose: str) -> None:
    """λ and statistics are numbers, of one space with α (None where they need not be)."""
    natural = isinstance(found, Natural)
    # A class of one's own may do as well, if it adds and scales.
    own = type(found) not in (type(None), dict, list, tuple) and not isinstance(prior, Natural)
    _demand(natural or own, f"{whose} must be a tempering.Natural; got {shown(found)}.")
    if natural and isinstance(prior, Natural):
        wanted, got = ({name: part.shape for name, part in each.items()} for each in (prior, found))
        _demand(got == wanted, f"{whose} must have the parts of prior(), {wanted}; got {got}.")
    for name, part in found.items() if natural else ():
        _check_finite(part, f"{whose}, part {name!r},")


def _check_finite(numbers: Any, whose: str) -> None:
    odd = ~np.isfinite(np.asarray(numbers, float))
    _demand(
        not odd.any(),
        f"{whose} must be finite; {odd.sum()} of {odd.size} numbers are NaN or infinite.",
    )


def _check_temperature(local: LocalStep, s: Any, method: str = "local_step") -> None:
    """A step tells the temperature that it was made at: pushes and q(T) weigh it by that."""
    given = s if np.ndim(s) == 0 else "one for each datum"
    _demand(
        np.array_equal(local.inverse_temperature, s),
        f"{method} must hand inverse_temperature on to LocalStep as it was given, here {given}; "
        f"got {shown(local.inverse_temperature)}.",
    )


def _check_starts(model: Model, rows: Any, prior: Any, seed: int) -> None:
    """From few data, as pushes off a saddle ask for them, and with the generator that is given."""
    hint = "source.sample(n, rng) returns at most n data, which stand for source.size."
    for n in FEW:
        few, rng = rows[:n], np.random.default_rng(seed)
        start = partial(fresh_start, model, few, rows.shape[0], rng)
        posterior = _tried("initialize", few.shape, start, hint)
        _check_parts(prior, posterior, f"λ of initialize from {few.shape[0]} data")
        again = fresh_start(model, few, rows.shape[0], np.random.default_rng(seed))
        _demand(
            describe(again) == describe(posterior),
            "initialize must draw with rng alone: it gave another λ from the same seed.",
        )
        # Few data are all taken, so that it is not their sample that was drawn. (Two starts may be
        # equal where one component is all there is, so they are not compared.)
        untouched = np.random.default_rng(seed).bit_generator.state
        _demand(
            rng.bit_generator.state != untouched,
            "initialize must draw with rng, and did not: all restarts would start alike, and "
            "components that start alike stay alike.",
        )


def _divergence(model: Model, posterior: Any) -> float:
    divergence = model.divergence(posterior)
    _demand(
        np.ndim(divergence) == 0,
        "divergence must be one number, summed over all parts and components; got an array of "
        f"shape {np.shape(divergence)}.",
    )
    return float(divergence)


def _close(found: Any, expected: Any, what: str, scale: float = 0.0, *, tolerance: float) -> None:
    """Compare numbers, and say what should have been equal."""
    found, expected = np.broadcast_arrays(np.asarray(found, float), np.asarray(expected, float))
    size = max(scale, float(np.abs(expected).max(initial=0.0)))
    worst = float(np.abs(found - expected).max(initial=0.0))
    _demand(worst <= tolerance * size, f"{what}; off by {worst:.3g} of {size:.3g}.")


def _step(model: Model, rows: Any, posterior: Any, s: Any) -> LocalStep:
    return model.local_step(rows, model.expectations(posterior), s)


def _next_step(
    model: Model, rows: Any, posterior: Any, s: float, before: LocalStep | None
) -> LocalStep:
    """As a fit makes it: from the step before, where the model continues steps."""
    if before is None or not model.continues_steps:
        return _step(model, rows, posterior, s)
    return model.continue_local_step(before, rows, model.expectations(posterior), s)


def _same_step(
    found: LocalStep, expected: LocalStep, close: Callable[..., None], whose: str
) -> None:
    _demand(found.n == expected.n, f"{whose} local step has {found.n} data, not {expected.n}.")
    for name, part in expected.statistics.items():
        what = f"{whose} statistics {name!r} must equal those of the whole"
        close(found.statistics[name], part, what)
    close(found.energies, expected.energies, f"{whose} energies must equal those of the whole")
    scale = abs(expected.energy)
    close(found.entropy, expected.entropy, f"{whose} entropy must equal that of the whole", scale)


def _check_sums(model: Model, rows: Any, start: Any, close: Callable[..., None]) -> None:
    """Halves add up, of one temperature and of two; and one for all is one for each."""
    n = rows.shape[0]
    half = n // 2
    whole = _step(model, rows, start, HOT)
    one_each = _step(model, rows, start, np.full(n, HOT))
    _same_step(one_each, whole, close, "with one temperature a datum, the")
    if n == 1:  # no fit makes a step without data, so a model need not be able to
        return
    expected = model.expectations(start)  # of one step, which all its shards share
    solve = model.local_step
    first, second = (solve(part, expected, HOT) for part in (rows[:half], rows[half:]))
    _same_step(first + second, whole, close, "two halves'")
    if np.ndim(whole.local):
        _demand(
            len(first.local) + len(second.local) == len(whole.local),
            "local of local_step must have a row for each datum, which shards put one below the "
            f"other; got shape {np.shape(whole.local)} for {n} data.",
        )
    temperatures = np.where(np.arange(n) < half, HOT, 1.0)
    mixed = _step(model, rows, start, temperatures)
    apart = first + _step(model, rows[half:], start, 1.0)
    what = (
        "where each datum has its own temperature alone, inverse_temperature[i] (statistics must "
        "be weighted by the inverse temperature), the"
    )
    _same_step(mixed, apart, close, what)
    _check_temperature(mixed, temperatures)


def _check_components(model: Model, rows: Any, start: Any, close: Callable[..., None]) -> None:
    """The ELBO must be the same for another order of the components."""
    found = _tried("components", rows.shape, lambda: Components.of(model))
    if found is None:
        return
    order = np.roll(np.arange(found.n), 1)
    statistics = model.unpack_components(dict(_step(model, rows, start, 1.0).statistics))

    def elbo(order: Any) -> float:
        target = model.pack_components(permuted(statistics, model.components, order))
        before = deepcopy(start)
        if isinstance(start, Natural) and model.provides("global_step"):
            before = Natural(**permuted(start, model.components, order))
        posterior = model.global_step(before, model.prior() + Natural(**target), 1.0)
        posterior = model.revise(posterior, 0.0, 0.0)
        local = _step(model, rows, posterior, 1.0)
        return local.energy + local.entropy - _divergence(model, posterior)

    there, here = elbo(order), elbo(np.arange(found.n))
    close(there, here, "components must be exchangeable: the ELBO in another order")


def _check_normalizers(model: Model, rows: Any, posterior: Any, close: Callable[..., None]) -> None:
    """log c(s) is that of a density at s = 1, and convex, as log ∫ p^s always is."""
    s = np.array([HOT, (HOT + 1.0) / 2, 1.0])
    found = np.asarray(model.local_log_normalizer(model.expectations(posterior), s, rows))
    _demand(
        found.ndim == 2 and found.shape[0] in (1, rows.shape[0]) and found.shape[1] == s.size,
        f"local_log_normalizer must have shape [n, M], or [1, M], here ({rows.shape[0]}, {s.size}) "
        f"or (1, {s.size}); got {found.shape}.",
    )
    what = "local_log_normalizer at s = 1 must be 0: p(x, z | β) sums to 1"
    close(found[:, -1], 0.0, what, scale=1.0)
    hot, between, cold = found.T
    below = np.minimum((hot + cold) / 2 - between, 0.0)
    what = "local_log_normalizer must be convex in s, as log ∫ p(x, z | β)^s is (a sign?)"
    close(below, 0.0, what, scale=1.0 + float(np.abs(found).max()))


def _check_likelihood(model: Model, rows: Any, posterior: Any, rng: np.random.Generator) -> None:
    """What q(z) leaves of log p(x | β) is never above it: else the ELBO is no bound."""
    draws = model.draw(posterior, DRAWS, rng)
    scores = [model.log_likelihood(rows, entry(draws, number)) for number in range(DRAWS)]
    n = rows.shape[0]
    _demand(
        np.shape(scores[0]) == (n,),
        f"log_likelihood must give one number for each of {n} data; got shape "
        f"{np.shape(scores[0])}.",
    )
    totals = np.sum(scores, axis=1)
    most = totals.mean() + 5.0 * totals.std() / math.sqrt(DRAWS)
    local = _step(model, rows, posterior, 1.0)
    bound = local.energy + local.entropy
    _demand(
        bound <= most + 1e-6 * abs(most),
        f"energy + entropy at T = 1, {bound:.8g}, must not be above E log p(x | β), at most "
        f"{most:.8g} by log_likelihood: one of them lacks a term.",
    )


def _bound(model: Model, posterior: Any, local: LocalStep, s: float) -> float:
    return s * local.energy + local.entropy - model.divergence(posterior)


def _check_ascent(model: Model, rows: Any, posterior: Any, s: float, tolerance: float) -> None:
    posterior = deepcopy(posterior)  # a global step may write into it
    before = rise = -math.inf
    local = None
    for update in range(UPDATES):
        local = _next_step(model, rows, posterior, s, local)
        bound = _bound(model, posterior, local, s)
        _demand(
            math.isfinite(bound), f"the ELBO is {bound} after {update} updates at T = {1 / s:g}."
        )
        _demand(
            before == -math.inf or bound >= before - tolerance * abs(before),
            f"the ELBO must not fall, but at T = {1 / s:g} update {update} takes it from "
            f"{before:.8g} to {bound:.8g}. Look at statistics (weighted by s?), at energies (not "
            "weighted), at entropy, and at divergence.",
        )
        rise, before = bound - before, bound
        posterior = model.global_step(posterior, model.prior() + local.statistics, 1.0)
    # Where updates come to rest, a posterior nearer to the prior is worse. It is better where data
    # count for more than s.
    nearer = model.global_step(posterior, model.prior(), 0.3)
    bound = _bound(model, nearer, _next_step(model, rows, nearer, s, local), s)
    _demand(
        bound <= before + tolerance * abs(before) + UPDATES * abs(rise),
        f"updates at T = {1 / s:g} come to rest at an ELBO of {before:.8g}, but a step towards the "
        f"prior leads to {bound:.8g}: statistics must be weighted by the inverse temperature.",
    )


def _check_continuing(model: Model, rows: Any, posterior: Any, s: float, tolerance: float) -> None:
    """At the same λ, a step that goes on from q(z) makes it no worse."""
    _demand(
        model.provides("continue_local_step"),
        "continues_steps is True, but continue_local_step is not defined.",
    )
    first = _step(model, rows, posterior, s)
    hint = ""
    if first.local is None:
        hint = "It starts from local.local, so local_step must return LocalStep(..., local=q)."
    go_on = partial(model.continue_local_step, first, rows, model.expectations(posterior), s)
    local = _tried("continue_local_step", rows.shape, go_on, hint)
    fall = s * (first.energy - local.energy) + first.entropy - local.entropy
    _demand(
        fall <= tolerance * abs(first.energy),
        f"continue_local_step at T = {1 / s:g} must not lower s·energy + entropy of the step that "
        f"it starts from, but at the same λ it falls by {fall:.6g}.",
    )
    _check_temperature(local, s, "continue_local_step")


def _check_optimum(model: Model, rows: Any, posterior: Any, s: float, tolerance: float) -> None:
    """q(z) maximises the bound at its own temperature: that of another one does not beat it."""
    own = _step(model, rows, posterior, s)
    for other in (0.5 * s, min(1.0, 1.5 * s)):
        local = _step(model, rows, posterior, other)
        gain = s * (local.energy - own.energy) + local.entropy - own.entropy
        _demand(
            gain <= tolerance * abs(own.energy),
            f"local_step at T = {1 / s:g} must maximise s·energy + entropy, but q(z) of "
            f"T = {1 / other:g} does better there. Is q(z) ∝ exp(s E[log p(x, z | β)])?",
        )
