"""Whatever is in a checkpoint: the fit goes on to finite numbers, or says what is wrong with it."""

import shutil
import warnings

import numpy as np
import pytest
from scipy import sparse

from mutations import mutate
from raw_trees import read_raw, write_raw
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
from tempering.storage.errors import StorageError
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
        self.content = self.path.read_bytes()
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


#: What may stand where something else should.
ODD = [None, True, -1, 0, 3, 2**40, 2**62, -0.5, 0.0, 1e-320, 1e308, 2.0, "x", [], {}, ()]
ODD += [np.float64("nan"), float("nan"), float("inf"), float("-inf"), np.zeros(3), np.empty(0)]
NUMBERS = [np.nan, np.inf, -np.inf, -1.0, 0.0, 1e-40, 1e20, 1e38, 1e300]


def places(tree, path=()):
    """The way to each node."""
    yield path
    if isinstance(tree, dict):
        for key, part in tree.items():
            yield from places(part, (*path, key))
    elif isinstance(tree, list | tuple):
        for number, part in enumerate(tree):
            yield from places(part, (*path, number))


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


def damaged_array(array, rng):
    kind = rng.integers(0, 6)
    if kind == 0:
        return array[:-1] if array.ndim else array[None]
    if kind == 1:
        return np.concatenate([array, array]) if array.ndim else np.zeros((2, 2))
    if kind == 2:
        with np.errstate(all="ignore"):
            return array.astype(rng.choice(["f4", "f8", "i8", "i4", "?"]))
    if kind == 3:
        return array.T.copy() if array.ndim > 1 else array[:, None] if array.ndim else array
    changed = array.copy()
    if array.size and array.dtype.kind in "fi":
        with np.errstate(all="ignore"):
            number = np.array(rng.choice(NUMBERS)).astype(array.dtype)
        where = slice(None) if kind == 4 else int(rng.integers(0, array.size))
        changed.reshape(-1)[where] = number
    return changed


def damaged_tree(tree, rng):
    """A tree that can be stored, with one or two nodes changed, taken out, put in or exchanged."""
    for _ in range(rng.integers(1, 3)):
        ways = [path for path in places(tree) if path[1:2] != ("fingerprint",)]
        if rng.random() < 0.05:
            ways = list(places(tree))
        if rng.random() < 0.5:  # the numbers themselves
            numbers = [path for path in ways if isinstance(at(tree, path), np.ndarray | float)]
            ways = numbers or ways
        path = ways[int(rng.integers(0, len(ways)))]
        node, kind = at(tree, path), rng.integers(0, 5)
        if isinstance(node, float) and kind < 3:
            tree = put(tree, path, float(rng.choice(NUMBERS)))
        elif isinstance(node, np.ndarray) and kind < 4:
            tree = put(tree, path, damaged_array(node, rng))
        elif isinstance(node, dict) and node and kind < 3:
            key = str(rng.choice(list(node)))
            rest = {name: part for name, part in node.items() if name != key}
            tree = put(tree, path, rest if kind else {**rest, "_other": node[key]})
        elif kind == 3:
            other = ways[int(rng.integers(0, len(ways)))]
            tree = put(tree, path, at(tree, other))
        else:
            tree = put(tree, path, ODD[int(rng.integers(0, len(ODD)))])
    return tree


def damage(case, n, seed):
    """Refusals, and fits that went on, of n damaged checkpoints."""
    rng = np.random.default_rng(seed)
    refused = 0
    for number in range(n):
        if number % 4 == 0:
            content = mutate(case.content, rng)
            reason = case.resume(lambda path, content=content: path.write_bytes(content))
        else:
            tree = damaged_tree(case.tree, rng)
            reason = case.resume(lambda path, tree=tree: write_raw(path, tree))
        assert reason is None or case.path.name in reason
        refused += reason is not None
    return refused, n - refused


@pytest.mark.parametrize("name", CASES)
def test_a_damaged_checkpoint_is_refused_or_does_no_harm(tmp_path, name):
    case = Case(name, tmp_path / "kept")
    assert case.resume(lambda path: path.write_bytes(case.content)) is None
    refused, went_on = damage(case, 40, seed=1)
    assert refused > went_on


RUN = ("content", "run")
STATE = (*RUN, "state", "$state")


@pytest.mark.parametrize(
    ("name", "place", "change", "message"),
    [
        ("mixture", (*STATE, "posterior", "$natural", "weights"), lambda w: w[:-1], "weights of"),
        ("mixture", (*STATE, "posterior", "$natural", "weights"), lambda w: -w, "proper"),
        ("mixture", (*STATE, "step"), lambda step: step + 1, "not those of the history"),
        ("mixture", ("content", "elbos"), lambda elbos: elbos * 2, "too many restarts"),
        ("mixture", (*RUN, "model", "weights"), lambda _: 1.0, "'weights' is not learned"),
        ("topics", (*STATE, "posterior", "$topics", "_values"), lambda v: v[:-1], "shape"),
        ("topics", (*STATE, "posterior", "$topics", "_sums"), lambda v: 4 * v, "sums"),
        (
            "mixture, LVT",
            (*STATE, "heat", "$local_heat", "inverse_temperature"),
            lambda s: s[:-1],
            "one temperature for all data, or for each",
        ),
        (
            "topics, VT",
            (*STATE, "heat", "$tempering_heat", "weights"),
            lambda weights: weights[:-1],
            "weights",
        ),
        (
            "features",
            (*STATE, "solved", "$tuple", 1, "$activation_step", "activations"),
            lambda z: z[:, :-1],
            "activations must be from 0 to 1",
        ),
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


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_many_damaged_checkpoints_are_refused_or_do_no_harm(tmp_path, name):
    refused, went_on = damage(Case(name, tmp_path / "kept"), 400, seed=2)
    print(f"{name}: {refused} refused, {went_on} went on to finite numbers")
