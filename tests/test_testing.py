"""`check_model` passes every model of the package, and names what is wrong with a broken one."""

from __future__ import annotations

import numpy as np
import pytest

from tempering import LocalStep, Mixture, Natural, fit
from tempering.families import Bernoulli, Dirichlet, FullGaussian, Poisson
from tempering.inference import ArraySource
from tempering.testing import check_model


def counts() -> np.ndarray:
    return np.random.default_rng(0).poisson([[2], [20]], size=(2, 60)).reshape(-1, 1).astype(float)


class Counts(Mixture):
    def __init__(self):
        super().__init__(Poisson(1), Dirichlet(2), [1.0, 1.0], [1.0, 0.1])


def test_sound_models_pass():
    rng = np.random.default_rng(0)
    check_model(Counts(), counts())
    check_model(StepsInPlace(), counts())
    gaussian = FullGaussian(2)
    prior = gaussian.conjugate.natural(np.zeros(2), 0.1, 4.0, np.eye(2))
    check_model(Mixture(Poisson(1), Dirichlet(1), [1.0], [1.0, 0.1]), counts())
    check_model(Mixture(gaussian, Dirichlet(3), np.ones(3), prior), rng.normal(size=(80, 2)))
    bits = Bernoulli(5)
    prior = np.ones(bits.conjugate.size)
    check_model(Mixture(bits, Dirichlet(3), np.ones(3), prior), np.eye(5)[rng.integers(5, size=90)])


class Unweighted(Counts):
    def local_step(self, data, expectations, inverse_temperature):
        step = super().local_step(data, expectations, inverse_temperature)
        step.statistics = (1.0 / step.mean_inverse_temperature) * step.statistics
        return step


class WeightedEnergies(Counts):
    def local_step(self, data, expectations, inverse_temperature):
        step = super().local_step(data, expectations, inverse_temperature)
        s = inverse_temperature
        return LocalStep(step.statistics, s * step.energies, step.entropy, s)


class MeanEntropy(Counts):
    def local_step(self, data, expectations, inverse_temperature):
        step = super().local_step(data, expectations, inverse_temperature)
        return LocalStep(
            step.statistics, step.energies, step.entropy / len(data), inverse_temperature
        )


class OneTemperature(Counts):
    def local_step(self, data, expectations, inverse_temperature):
        return super().local_step(data, expectations, float(np.mean(inverse_temperature)))


class Negative(Counts):
    def divergence(self, posterior, prior_weight=1.0):
        return -super().divergence(posterior, prior_weight)


class WritesIntoData(Counts):
    def local_step(self, data, expectations, inverse_temperature):
        data[:] = 1.0
        return super().local_step(data, expectations, inverse_temperature)


class FamilyOfOnePart(Counts):
    @property
    def families(self):
        return {"weights": self.weights}


class Unpicklable(Counts):
    def __init__(self):
        super().__init__()
        self.generator = (n for n in range(3))


class WrongNormalizer(Counts):
    def local_log_normalizer(self, expectations, inverse_temperatures, data):
        return super().local_log_normalizer(expectations, inverse_temperatures, data) + 1.0


class OneWeight(Counts):
    """Each datum is solved at its own temperature, but all count for the mean."""

    def local_step(self, data, expectations, inverse_temperature):
        step = super().local_step(data, expectations, inverse_temperature)
        weights = np.mean(inverse_temperature) * step.local.sum(axis=0)
        statistics = step.statistics.replace(weights=weights)
        return LocalStep(statistics, step.energies, step.entropy, inverse_temperature)


class ForgetsTemperature(Counts):
    def local_step(self, data, expectations, inverse_temperature):
        step = super().local_step(data, expectations, inverse_temperature)
        return LocalStep(step.statistics, step.energies, step.entropy, 1.0, local=step.local)


class ColumnOfTemperatures(Counts):
    def local_step(self, data, expectations, inverse_temperature):
        step = super().local_step(data, expectations, inverse_temperature)
        step.inverse_temperature = np.reshape(inverse_temperature, (-1, 1))
        return step


class MeanTemperature(Counts):
    def local_step(self, data, expectations, inverse_temperature):
        step = super().local_step(data, expectations, inverse_temperature)
        step.inverse_temperature = float(np.mean(inverse_temperature))
        return step


class WritesIntoExpectations(Counts):
    def expectations(self, posterior):
        return [super().expectations(posterior), np.ones(1)]

    def local_step(self, data, expectations, inverse_temperature):
        expected, calls = expectations
        step = super().local_step(data, expected, inverse_temperature)
        step.statistics, calls[:] = calls[0] * step.statistics, calls + 1
        return step


class WritesIntoPosterior(Counts):
    def expectations(self, posterior):
        np.maximum(posterior.weights, 200.0, out=posterior.weights)
        return super().expectations(posterior)


class Remembers(Counts):
    """What one thread has written another one reads."""

    def local_step(self, data, expectations, inverse_temperature):
        self.seen = data
        return super().local_step(self.seen, expectations, inverse_temperature)


class ContinuesColdAlways(Counts):
    """No model of ``continues_steps``, but local temperatures go on from steps."""

    def continue_local_step(self, local, data, expectations, inverse_temperature):
        return self.local_step(data, expectations, 1.0)


class ColumnsOfLocal(Counts):
    def local_step(self, data, expectations, inverse_temperature):
        step = super().local_step(data, expectations, inverse_temperature)
        step.local = step.local.T
        return step


class Improper(Counts):
    def initialize(self, source, rng):
        return super().initialize(source, rng) - 1000.0 * self.prior()


class AlsoGlobalRandomness(Counts):
    def initialize(self, source, rng):
        return (1.0 + np.random.rand()) * super().initialize(source, rng)  # noqa: NPY002


class NormalizerOfOneAxis(Counts):
    def local_log_normalizer(self, expectations, inverse_temperatures, data):
        return super().local_log_normalizer(expectations, inverse_temperatures, data)[0]


class NegativeNormalizer(Counts):
    def local_log_normalizer(self, expectations, inverse_temperatures, data):
        return -super().local_log_normalizer(expectations, inverse_temperatures, data)


class LowLikelihood(Counts):
    def log_likelihood(self, data, parameters):
        return super().log_likelihood(data, parameters) - 1.0


class OneLikelihood(Counts):
    def log_likelihood(self, data, parameters):
        return super().log_likelihood(data, parameters).sum()


class StepsInPlace(Counts):
    """A sound one: λ may be changed where it is."""

    def global_step(self, posterior, target, rate):
        for name, part in posterior.items():
            part[...] += rate * (target[name] - part)
        return posterior


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Unweighted, "must be weighted by the inverse temperature"),
        (WeightedEnergies, "must"),
        (MeanEntropy, "two halves' entropy"),
        (OneTemperature, "its own temperature alone"),
        (OneWeight, "its own temperature alone"),
        (ForgetsTemperature, "local_step must hand .* as it was given, here 0.4; got 1.0"),
        (ColumnOfTemperatures, r"as it was given, here 0.4; got array\(\[\[0.4"),
        (MeanTemperature, "as it was given, here one for each datum; got 0.7"),
        (WritesIntoExpectations, "two halves' statistics"),
        (WritesIntoPosterior, "λ must stay as it is"),
        (Remembers, r"local_step must not change the model.*: seen \(it was"),
        (ContinuesColdAlways, "continue_local_step at T = 2.5 must not lower"),
        (ColumnsOfLocal, r"must have a row for each datum.*got shape \(2, 120\) for 120 data"),
        (Improper, r"weights of the posterior must be a proper Dirichlet.*\(in initialize, with"),
        (AlsoGlobalRandomness, "initialize must draw with rng alone"),
        (NormalizerOfOneAxis, r"here \(120, 3\) or \(1, 3\); got \(3,\)"),
        (NegativeNormalizer, "local_log_normalizer must be convex"),
        (LowLikelihood, "one of them lacks a term"),
        (OneLikelihood, r"one number for each of 120 data; got shape \(\)"),
        (WritesIntoData, "must not write into the data"),
        (FamilyOfOnePart, "it lacks components"),
        (Negative, "divergence"),
        (WrongNormalizer, "local_log_normalizer at s = 1"),
    ],
)
def test_a_broken_model_is_named(model, words):
    with pytest.raises(AssertionError, match=words):
        check_model(model(), counts())


class Counted(Counts):
    def check(self, data):
        if (data < 0).any():
            raise ValueError("counts are never negative")


def test_data_are_checked_as_a_fit_would_check_them():
    """A list of rows has become an array by then."""
    check_model(Counted(), counts().tolist())
    with pytest.raises(ValueError, match="counts are never negative"):
        check_model(Counted(), [[-1.0]])


class NeedsData(Counts):
    def local_step(self, data, expectations, inverse_temperature):
        assert len(data)
        return super().local_step(data, expectations, inverse_temperature)


def test_a_single_datum_is_not_halved():
    check_model(NeedsData(), counts()[:1])


def test_a_model_that_cannot_be_pickled_is_told():
    with pytest.raises(AssertionError, match="must be picklable"):
        check_model(Unpicklable(), counts())


class OneEnergy(Counts):
    def local_step(self, data, expectations, inverse_temperature):
        step = super().local_step(data, expectations, inverse_temperature)
        return LocalStep(step.statistics, step.energy, step.entropy, inverse_temperature)


class MeanEnergy(Counts):
    def local_step(self, data, expectations, inverse_temperature):
        step = super().local_step(data, expectations, inverse_temperature)
        mean = step.energies.mean(keepdims=True)
        return LocalStep(step.statistics, mean, step.entropy, inverse_temperature)


class DivergenceOfEach(Counts):
    def divergence(self, posterior, prior_weight=1.0):
        return np.full(2, super().divergence(posterior, prior_weight))


class OtherName(Counts):
    def local_step(self, data, expectations, inverse_temperature):
        step = super().local_step(data, expectations, inverse_temperature)
        named = Natural(weight=step.statistics.weights, components=step.statistics.components)
        return LocalStep(named, step.energies, step.entropy, inverse_temperature)


class OtherShape(Counts):
    def initialize(self, source, rng):
        start = super().initialize(source, rng)
        return Natural(weights=start.weights[:1], components=start.components)


class Flat(Counts):
    """Its data are [n], and it does not check them."""

    def check(self, data):
        pass

    def initialize(self, source, rng):
        return super().initialize(ArraySource(source.data[:, None]), rng)


class Misspelt(Counts):
    def local_step(self, data, expectations, inverse_temperature):
        return expectd  # noqa: F821


class LacksPart(Counts):
    def expectations(self, posterior):
        return posterior["weight"]


class HalfOfTheData(Counts):
    def initialize(self, source, rng):
        assignment = rng.dirichlet(np.ones(2), size=60)
        return self.prior() + self.statistics(source.sample(60, rng), assignment)


class AtPrior(Counts):
    def initialize(self, source, rng):
        return self.prior()


class OneGenerator(Counts):
    def initialize(self, source, rng):
        return super().initialize(source, np.random.default_rng(0))


class NoStart(Counts):
    def initialize(self, source, rng):
        return None


class DictPrior(Counts):
    def prior(self):
        return dict(super().prior())


class NoStep(Counts):
    def local_step(self, data, expectations, inverse_temperature):
        return None


class Changed(Counts):
    """A step with other values of some of its attributes."""

    def local_step(self, data, expectations, inverse_temperature):
        step = super().local_step(data, expectations, inverse_temperature)
        parts = {"statistics": step.statistics, "energies": step.energies, "entropy": step.entropy}
        return LocalStep(**{**parts, **self.change(step)}, inverse_temperature=inverse_temperature)

    def change(self, step):
        return {}


class EntropyOfEach(Changed):
    def change(self, step):
        return {"entropy": np.full(step.n, step.entropy / step.n)}


class DictStatistics(Changed):
    def change(self, step):
        return {"statistics": dict(step.statistics)}


class OddEnergy(Changed):
    def change(self, step):
        return {"energies": np.where(np.arange(step.n) == 3, np.nan, step.energies)}


class ListOfEnergies(Changed):
    def change(self, step):
        return {"energies": list(step.energies)}


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (HalfOfTheData, r"\(in initialize, with data of shape \(2, 1\)\)\. .*at most n data"),
        (AtPrior, "initialize must draw with rng"),
        (OneGenerator, "initialize must draw with rng"),
        (NoStart, "initialize must be a tempering.Natural; got None"),
        (DictPrior, r"prior\(\) must be a tempering.Natural; got {'weights'"),
        (NoStep, "local_step must return a LocalStep; got None"),
        (EntropyOfEach, r"entropy must be one number.*got shape \(120,\).*\(in local_step, with"),
        (DictStatistics, r"statistics must be a Natural; got a dict.*\(in local_step, with"),
        (OddEnergy, "energies of local_step must be finite; 1 of 120"),
        (OneEnergy, r"energies must be \[n\], one a datum; got shape \(\)"),
        (MeanEnergy, "one energy for each of 120 data; got 1"),
        (DivergenceOfEach, r"summed over all parts and components; got an array of shape \(2,\)"),
        (OtherName, r"the statistics of local_step must have the parts of prior\(\).*'weight'"),
        (OtherShape, r"initialize must have the parts of prior\(\).*'weights': \(1,\)"),
        (Flat, r"^ValueError: .*\(in initialize, with data of shape \(120, 1\)\)\.$"),
        (Misspelt, r"^NameError: name 'expectd'.* \(in local_step, with data of shape .*\)\.$"),
        (LacksPart, r"^KeyError: .* \(in expectations, with data of shape \(120, 1\)\)\.$"),
    ],
)
def test_a_wrong_shape_or_name_is_told_in_words(model, words):
    with pytest.raises(AssertionError, match=words):
        check_model(model(), counts())


class NoContinuing(Counts):
    continues_steps = True


class Continuing(NoContinuing):
    def continue_local_step(self, local, data, expectations, inverse_temperature):
        return self.local_step(data, expectations, inverse_temperature)


class ContinuesCold(NoContinuing):
    def continue_local_step(self, local, data, expectations, inverse_temperature):
        return self.local_step(data, expectations, 1.0)


class ContinuesUnweighted(NoContinuing):
    def continue_local_step(self, local, data, expectations, inverse_temperature):
        step = self.local_step(data, expectations, inverse_temperature)
        step.statistics = (1.0 / step.mean_inverse_temperature) * step.statistics
        return step


class ContinuesFromNothing(NoContinuing):
    def local_step(self, data, expectations, inverse_temperature):
        step = super().local_step(data, expectations, inverse_temperature)
        return LocalStep(step.statistics, step.energies, step.entropy, inverse_temperature)

    def continue_local_step(self, local, data, expectations, inverse_temperature):
        assert local.local.shape[0] == len(data)


class ContinuesMisspelt(NoContinuing):
    def continue_local_step(self, local, data, expectations, inverse_temperature):
        return expectd  # noqa: F821


class WholeSteps(Counts):
    def global_step(self, posterior, target, rate):
        return target


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (NoContinuing, "continue_local_step is not defined"),
        (ContinuesCold, "continue_local_step at T = 2.5 must not lower"),
        (ContinuesUnweighted, "at T = 2.5.*weighted"),
        (ContinuesFromNothing, r"\(in continue_local_step, with .*LocalStep\(..., local=q\)"),
        (ContinuesMisspelt, r"^NameError: .* \(in continue_local_step, with data of .*\)\.$"),
        (WholeSteps, "global_step at rate 0 must leave"),
    ],
)
def test_steps_that_go_on_from_others_are_tried(model, words):
    check_model(Continuing(), counts())
    with pytest.raises(AssertionError, match=words):
        check_model(model(), counts())


def test_a_fit_names_what_is_no_step_and_takes_a_list_of_energies():
    with pytest.raises(TypeError, match="local_step of NoStep must return a LocalStep; got None"):
        fit(NoStep(), counts())
    check_model(ListOfEnergies(), counts())
    found, expected = (fit(model, counts(), max_passes=3) for model in (ListOfEnergies(), Counts()))
    assert found.elbo == expected.elbo


def test_an_unknown_part_is_named_with_those_there_are():
    with pytest.raises(KeyError, match="no parameter 'heads' here; there are: tails"):
        Natural(heads=1.0) + Natural(tails=1.0)


@pytest.mark.parametrize(
    ("name", "value"), [("model", Unpicklable), ("seed", -1), ("tolerance", np.nan)]
)
def test_odd_arguments_are_named(name, value):
    arguments = {"model": Unpicklable(), "data": counts(), name: value}
    with pytest.raises(ValueError, match=f"{name} must be"):
        check_model(**arguments)
