"""Whatever is in a checkpoint: the fit goes on to finite numbers, or says what is wrong with it."""

import shutil
import warnings

import numpy as np
import pytest
from scipy import sparse

from mutations import mutate
from raw_trees import contents_of, put_contents, read_raw, write_raw
from tempering.families import (
    Bernoulli,
    Dirichlet,
    FullGaussian,
    IsotropicGaussian,
    StickBreaking,
)
from tempering.inference import Checkpoint, RobbinsMonro, fit
from tempering.models import Mixture
from tempering.models.factorial_mixture import FactorialModel
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.sampling import Settled
from tempering.storage.state import StorageError
from tempering.temperature import Annealing, LocalTempering, VariationalTempering, schedules


class Killed(Exception):
    """What ends a run in these tests."""


def documents():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(12, 0.2), size=3)
    theta = rng.dirichlet(np.full(3, 0.5), size=24)
    return sparse.csr_matrix([rng.multinomial(20, row @ topics) for row in theta])


def table():
    rng = np.random.default_rng(0)
    return rng.normal(4.0 * rng.integers(0, 3, size=(40, 1)), 1.0, size=(40, 2))


def topics(**options):
    return LatentDirichlet(3, 12, 0.3, 0.1, n_threads=1, **options)


def gaussians():
    likelihood = IsotropicGaussian(2, 1.0)
    prior = likelihood.conjugate.natural(np.zeros(2), 20.0)
    return Mixture(likelihood, Dirichlet(3), np.ones(3), prior)


def wishart():
    likelihood, sticks = FullGaussian(2), StickBreaking(3)
    prior = likelihood.conjugate.natural(np.zeros(2), 1.0, 3.0, np.eye(2))
    return Mixture(likelihood, sticks, sticks.natural(1.0, 1.0), prior)


def bernoullis():
    return Mixture(Bernoulli(2), Dirichlet(3), np.ones(3), np.ones(4))


def features(**options):
    model = FactorialModel(3, 2, 1.0, 10.0, 0.4, learn=("noise_variance",), **options)
    model.shard_size = 16
    return model


ONLINE = {"batch_size": 8, "learning_rate": RobbinsMonro(4.0, 0.7), "max_passes": 3}
CASES = {
    "topics": (topics, documents, {**ONLINE, "n_init": 2}),
    "topics, sampled": (
        lambda: topics(update="sampled", adapted_part=0.5, settled=Settled(0.6, 0.8, 0.1)),
        documents,
        {**ONLINE, "final_elbo": False},
    ),
    "topics, learned priors": (
        lambda: topics(learn_doc_topic_prior=True, learn_topic_word_prior=True),
        documents,
        ONLINE,
    ),
    "topics, VT": (topics, documents, {**ONLINE, "temperature": VariationalTempering()}),
    "topics, LVT": (
        topics,
        documents,
        {**ONLINE, "temperature": LocalTempering(damping=1.0)},
    ),
    "topics, annealed": (
        topics,
        documents,
        {**ONLINE, "temperature": Annealing(schedules.linear, passes=2, start="auto")},
    ),
    "mixture": (gaussians, table, {"n_init": 2}),
    "mixture, VT": (gaussians, table, {"temperature": VariationalTempering()}),
    "mixture, LVT": (wishart, table, {"temperature": LocalTempering()}),
    "mixture, annealed": (
        bernoullis,
        lambda: (table() > 4) * 1.0,
        {**ONLINE, "temperature": Annealing(schedules.linear(3.0))},
    ),
    "features": (features, table, {"temperature": LocalTempering()}),
    "features, VT": (
        lambda: features(local="exact"),
        table,
        {"temperature": VariationalTempering(), "n_init": 2},
    ),
}


class Case:
    """A fit that was killed, and its checkpoint, to be damaged."""

    def __init__(self, name, folder):
        make, data, options = CASES[name]
        self.make, self.data, self.folder = make, data(), folder
        self.options = {"max_passes": 8, "tolerance": 0.0, "progress": False, "n_threads": 1}
        self.options |= options
        n_steps = 4 if "n_init" not in options else 4 + (8 if "batch_size" not in options else 9)
        seen = []

        def strike(report):
            seen.append(report)
            if len(seen) == n_steps:
                raise Killed

        with pytest.raises(Killed):
            self.fit(callbacks=[strike])
        self.path = max(self.folder.glob("checkpoint-*"))
        self.contents = contents_of(self.path)
        self.tree = read_raw(self.path)
        assert (self.tree["content"]["best"] is not None) == ("n_init" in options)

    def fit(self, **more):
        checkpoint = Checkpoint(self.folder, every_minutes=None, every_steps=4)
        return fit(self.make(), self.data, checkpoint=checkpoint, **self.options, **more)

    def resume(self, write):
        """Whether the fit goes on from the checkpoint that ``write`` has left; if not, why."""
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        write(self.path)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                result = self.fit()
        except StorageError as error:
            return str(error)
        assert_finite(result)
        return None


def assert_finite(result):
    posterior = result.posterior
    parts = posterior.values() if hasattr(posterior, "keys") else [posterior.parameters()]
    assert all(np.isfinite(part).all() for part in parts)
    assert np.isfinite(result.history["temperature"]).all()
    assert np.isfinite(result.heat.inverse_temperature).all()


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


def put(tree, path, value):
    """The tree with another node; None takes the place of the whole."""
    if not path:
        return value
    key, *rest = path
    if isinstance(tree, dict):
        return {**tree, key: put(tree[key], rest, value)}
    parts = list(tree)
    parts[key] = put(parts[key], rest, value)
    return type(tree)(parts)


@pytest.mark.parametrize("name", CASES)
def test_a_damaged_checkpoint_is_refused(tmp_path, name):
    case, rng = Case(name, tmp_path / "kept"), np.random.default_rng(1)
    assert case.resume(lambda path: put_contents(path, case.contents)) is None
    for number in range(10):
        name = sorted(case.contents)[number % 2]
        contents = {**case.contents, name: mutate(case.contents[name], rng)}
        reason = case.resume(lambda path, contents=contents: put_contents(path, contents))
        assert reason is None or case.path.name in reason
        assert reason is not None or contents == case.contents


RUN = ("content", "run")
STATE = (*RUN, "state", "$state")


@pytest.mark.parametrize(
    ("name", "place", "change", "message"),
    [
        ("mixture", (*STATE, "posterior", "$natural", "weights"), lambda w: w[:-1], "weights of"),
        ("mixture", (*STATE, "posterior", "$natural", "weights"), lambda w: -w, "proper"),
        ("topics", (*STATE, "posterior", "$topics", "_values"), lambda v: v[:-1], "shape"),
        ("topics", (*STATE, "posterior", "$topics", "_sums"), lambda v: v[:-1], "shape"),
        ("features", (*RUN, "model", "noise_variance"), lambda _: -1.0, "noise_variance must be"),
        ("features", (*RUN, "over"), lambda _: 1, "over must be of bool"),
    ],
)
def test_what_a_fit_cannot_go_on_from_is_told(tmp_path, name, place, change, message):
    case = Case(name, tmp_path / "kept")
    *way, last = place
    parent = at(case.tree, way)
    changed = put(case.tree, way, {**parent, last: change(parent.get(last))})
    reason = case.resume(lambda path: write_raw(path, changed))
    assert reason is not None
    assert message in reason
    assert case.path.name in reason
    assert "resume=False" in reason
