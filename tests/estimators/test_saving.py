"""Estimators on disk: the same bits come back, and nothing else is believed."""

import contextlib
import copy
import json
import os
import pickle
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import tempering
from mutations import mutate
from raw_trees import sign
from tempering import (
    Annealing,
    BayesianFactorAnalysis,
    BayesianGaussianMixture,
    BernoulliMixture,
    CategoricalHMM,
    Checkpoint,
    FactorialMixture,
    GaussianHMM,
    LatentDirichletAllocation,
    LocalTempering,
    PoissonFactorization,
    PoissonMixture,
    RegressionMixture,
    StorageError,
    VariationalTempering,
    schedules,
)
from tempering.storage.state import read_tree, write_tree

pytestmark = pytest.mark.filterwarnings("ignore::tempering.estimators.lda.TopicWarning")


def documents(n=60, n_words=25):
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(n_words, 0.1), size=3)
    theta = rng.dirichlet(np.full(3, 0.3), size=n)
    return sparse.csr_matrix([rng.multinomial(30, row @ topics) for row in theta])


def clusters():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(centre, 0.5, size=(25, 2)) for centre in (0, 4, 9)])


def lda(**options):
    return LatentDirichletAllocation(
        3, **{"random_state": 0, "max_iter": 3, "batch_size": 20, "n_jobs": 1, **options}
    )


CASES = {
    "lda": (lda(), documents()),
    "lda learned priors": (lda(doc_topic_prior="auto", topic_word_prior="auto"), documents()),
    "lda variational": (lda(tempering="variational"), documents()),
    "lda local": (lda(tempering="local"), documents()),
    "gaussian": (BayesianGaussianMixture(3, random_state=0), clusters()),
    "gaussian diagonal": (BayesianGaussianMixture(3, covariance_type="diag"), clusters()),
    "bernoulli": (BernoulliMixture(2, random_state=0, max_iter=20), clusters() > 2),
    "poisson": (PoissonMixture(2, random_state=0, max_iter=20), documents().toarray()[:, :3]),
    "factorial": (
        FactorialMixture(2, random_state=0, max_iter=20, learn={"noise_variance"}, n_jobs=1),
        clusters(),
    ),
    "factorial mean field": (
        FactorialMixture(2, random_state=0, max_iter=10, local="mean-field", tempering="local"),
        clusters(),
    ),
    "loadings": (BayesianFactorAnalysis(1, random_state=0, max_iter=10), clusters()),
    "count factors": (PoissonFactorization(2, random_state=0, max_iter=10), documents()),
    "states": (GaussianHMM(2, random_state=0, n_iter=10), clusters()),
    "symbols": (CategoricalHMM(2, random_state=0, n_iter=10), (clusters()[:, :1] > 2).astype(int)),
}
#: Those whose files are forged: one of each kind.
FORGED = ("lda learned priors", "gaussian", "poisson", "factorial", "loadings", "count factors")
FORGED += ("states", "symbols")


@pytest.fixture(scope="module")
def fitted():
    """Each estimator, fitted once; tests take copies."""
    known = {}

    def get(name):
        if name not in known:
            estimator, X = CASES[name]
            known[name] = estimator.fit(X), X
        estimator, X = known[name]
        return copy.deepcopy(estimator), X

    return get


def predictions(estimator, X):
    method = estimator.transform if hasattr(estimator, "transform") else estimator.predict_proba
    return [method(X), estimator.score(X)]


def assert_same_predictions(one, other, X):
    for a, b in zip(predictions(one, X), predictions(other, X), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_estimator_predicts_with_the_same_bits(tmp_path, fitted, name):
    estimator, X = fitted(name)
    estimator.save(tmp_path / "model")
    loaded = tempering.load(tmp_path / "model")
    assert type(loaded) is type(estimator)
    assert loaded.get_params() == estimator.get_params()
    assert_same_predictions(loaded, estimator, X)
    assert vars(loaded).keys() == vars(estimator).keys()
    for column in set(estimator.history_[0]._fields) - {"weights"}:
        np.testing.assert_array_equal(loaded.history_[column], estimator.history_[column])
    for a, b in zip(loaded.history_, estimator.history_, strict=True):
        np.testing.assert_array_equal(a.weights, b.weights)
    # Saved again, it is the same file: nothing was lost on the way.
    loaded.save(tmp_path / "again")
    for file in ("config.json", "model.safetensors"):
        again, once = (tmp_path / folder / file for folder in ("again", "model"))
        assert again.read_bytes() == once.read_bytes()


@pytest.mark.parametrize("name", [name for name in CASES if hasattr(CASES[name][0], "partial_fit")])
def test_a_loaded_estimator_goes_on_with_a_stream(tmp_path, fitted, name):
    estimator, X = fitted(name)
    estimator.save(tmp_path / "model")
    loaded = tempering.load(tmp_path / "model")
    assert_same_predictions(loaded.partial_fit(X), estimator.partial_fit(X), X)


@pytest.mark.parametrize("policy", [None, "variational", "local", "annealing", "auto"])
def test_a_stream_can_be_saved_in_its_middle(tmp_path, policy):
    X = documents()
    options = {"tempering": policy, "total_samples": 200, "doc_topic_prior": "auto"}
    estimator = lda(**options).partial_fit(X[:40])
    estimator.save(tmp_path / "model")
    loaded = tempering.load(tmp_path / "model")
    for start in (0, 20, 40, 60, 80, 100):
        rows = X[start % 60 : start % 60 + 20]
        assert_same_predictions(loaded.partial_fit(rows), estimator.partial_fit(rows), X)
    assert loaded._state.data_seen == 160


@pytest.mark.parametrize("name", CASES)
def test_estimators_pickle(fitted, name):
    estimator, X = fitted(name)
    again = pickle.loads(pickle.dumps(estimator))
    assert_same_predictions(again, estimator, X)


@pytest.mark.parametrize("policy", ["auto", Annealing(), Annealing(start="auto")])
def test_estimators_with_schedules_pickle(policy):
    estimator = lda(tempering=policy, total_samples=1000).partial_fit(documents())
    again = pickle.loads(pickle.dumps(estimator))
    assert_same_predictions(
        again.partial_fit(documents()), estimator.partial_fit(documents()), X=documents()
    )


def same_policy(one, other):
    assert type(one) is type(other)
    for a, b in zip(vars(one).values(), vars(other).values(), strict=True):
        if callable(a):
            assert [a(u) for u in (0, 0.3, 1)] == [b(u) for u in (0, 0.3, 1)]
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "policy",
    [
        VariationalTempering(np.linspace(0.3, 1, 7), prior=np.arange(1, 8), damping=0.5),
        LocalTempering(fraction=None, formula="paper"),
        Annealing(schedules.linear(3.0), passes=2),
        Annealing(schedules.join([schedules.constant(4.0), schedules.linear(4.0)], [0.5])),
        Annealing(schedules.geometric(2.0), temper="joint"),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_policies_are_stored_by_name_and_fields(tmp_path, fitted, policy):
    estimator, _ = fitted("lda")
    estimator.set_params(tempering=policy).save(tmp_path / "model")
    same_policy(tempering.load(tmp_path / "model").tempering, policy)


def test_a_schedule_that_the_model_finds_is_stored(tmp_path, fitted):
    estimator, _ = fitted("lda")
    policy = Annealing(schedules.linear, start="auto")
    estimator.set_params(tempering=policy).save(tmp_path / "model")
    assert tempering.load(tmp_path / "model").tempering == policy


class OwnPolicy(LocalTempering):
    """A policy that the package does not know."""


@pytest.mark.parametrize("policy", [Annealing(lambda u: 5 - 4 * u), OwnPolicy()])
def test_a_parameter_that_cannot_be_stored_is_noted(tmp_path, fitted, policy):
    estimator, X = fitted("lda")
    estimator.set_params(tempering=policy)
    with pytest.warns(UserWarning, match="parameter tempering of .* is stored as null"):
        estimator.save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())["content"]
    assert config["parameters"]["tempering"] is None
    assert "tempering" in config["not_stored"]
    loaded = tempering.load(tmp_path / "model")
    assert loaded.tempering is None
    np.testing.assert_array_equal(loaded.transform(X), estimator.transform(X))


@pytest.mark.parametrize("policy", [Annealing(lambda u: 5 - 4 * u), OwnPolicy()])
def test_a_hot_stream_without_its_policy_goes_on_at_temperature_one(tmp_path, policy):
    X = np.random.default_rng(0).poisson(1.0, size=(40, 9))
    options = {"total_samples": 1000, "random_state": 0}
    for estimator in (
        tempering.LatentDirichletAllocation(3, tempering=policy, **options),
        tempering.BernoulliMixture(3, tempering=policy, **options),
    ):
        estimator.partial_fit(X > 0)
        assert np.any(estimator._state.heat.inverse_temperature < 1)
        with pytest.warns(UserWarning, match="is stored as null"):
            estimator.save(tmp_path / "model", overwrite=True)
        loaded = tempering.load(tmp_path / "model").partial_fit(X > 0)
        assert loaded._state.heat.inverse_temperature == 1
        assert not estimator._state.heat.finished  # the one that was saved goes on as it was


def test_a_random_state_object_is_stored(tmp_path, fitted):
    estimator, _ = fitted("bernoulli")
    state = np.random.RandomState(3)
    state.normal(size=5)
    estimator.set_params(random_state=state).save(tmp_path / "model")
    loaded = tempering.load(tmp_path / "model").random_state
    np.testing.assert_array_equal(loaded.normal(size=9), state.normal(size=9))


def test_words_are_kept(tmp_path, fitted):
    estimator, _ = fitted("lda")
    words = [f"wört\n{i}" for i in range(25)]
    estimator.save(tmp_path / "model", words)
    loaded = tempering.load(tmp_path / "model")
    assert loaded.vocabulary_.tolist() == words
    assert loaded.topics(4) == estimator.topics(4, words)
    loaded.save(tmp_path / "again")
    assert tempering.load(tmp_path / "again").vocabulary_.tolist() == words


def test_feature_names_are_kept(tmp_path, fitted):
    estimator, _ = fitted("lda")
    estimator.feature_names_in_ = np.array([f"w{i}" for i in range(25)], dtype=object)
    estimator.save(tmp_path / "model")
    loaded = tempering.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.feature_names_in_, estimator.feature_names_in_)
    assert loaded.topics(3) == estimator.topics(3)


def test_what_cannot_be_saved_is_told(tmp_path, fitted):
    estimator, _ = fitted("lda")
    with pytest.raises(ValueError, match="has 1 words; the estimator was fitted to 25 columns"):
        estimator.save(tmp_path / "model", ["a"])
    with pytest.raises(NotFittedError):
        lda().save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_only_models_are_replaced_and_only_if_asked(tmp_path, fitted):
    estimator, _ = fitted("bernoulli")
    estimator.save(tmp_path / "model")
    with pytest.raises(FileExistsError, match="pass overwrite=True"):
        estimator.save(tmp_path / "model")
    estimator.set_params(verbose=3).save(tmp_path / "model", overwrite=True)
    assert tempering.load(tmp_path / "model").verbose == 3
    (tmp_path / "mine").mkdir()
    with pytest.raises(FileExistsError, match="is not a saved model"):
        estimator.save(tmp_path / "mine", overwrite=True)


@pytest.mark.skipif(os.name != "posix", reason="limits of processes are for POSIX")
def test_a_full_disk_leaves_the_model_that_was_there(tmp_path, fitted):
    estimator, X = fitted("gaussian")
    estimator.save(tmp_path / "model")
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="no room to write") as told:
            estimator.save(tmp_path / "model", overwrite=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert f"no room to write {tmp_path / 'model'}" in str(told.value)
    assert os.listdir(tmp_path) == ["model"]
    assert_same_predictions(tempering.load(tmp_path / "model"), estimator, X)


# What is not believed.


def edit_config(folder, change, signed=True):
    """Change the description of a saved model, and sign it as if it had been written so."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(sign(config) if signed else config))


def put(*keys):
    """A change that sets the last of the keys, along the path of the others, to the value."""
    *path, last, value = keys

    def change(config):
        if keys[0] in config["content"]:
            config = config["content"]
        for key in path:
            config = config[key]
        config[last] = value

    return change


TOPICS = ("fitted", "_state", "$state", "posterior", "$topics")
LDA_MODEL = ("fitted", "_model", "$latent_dirichlet")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("format", 2), "format 2, .* reads format 1: use the version that wrote it"),
        (put("format", 0), "it has format 0"),
        (put("format", "1"), "it has format '1'"),
        (put("estimator", "os.system"), "unknown class 'os.system'"),
        (put("estimator", "SVC"), "unknown class"),
        (put("estimator", ["SVC"]), "damaged"),
        (put("estimator", "PoissonMixture"), "PoissonMixture has no parameter"),
        (put("more", 1), "entries are missing, or too many"),
        (
            put("parameters", "n_components", 4),
            r"shape \(3, 25\); the parameters ask for \(4, 25\)",
        ),
        (put("parameters", "n_components", -1), "'n_components' parameter"),
        (put("parameters", "n_components", "three"), "'n_components' parameter"),
        (put("parameters", "tempering", {"$natural": {}}), "'tempering' param"),
        (put("parameters", "unheard_of", 1), "no parameter 'unheard_of'"),
        (put("parameters", []), "damaged"),
        (put("fitted", "n_features_in_", 26), r"must|the parameters ask for \(3, 26\)"),
        (put("fitted", "n_features_in_", None), "n_features_in_ must be a number"),
        (put("fitted", "transform", 1), "bad name 'transform'"),
        (put("fitted", "__class__", 1), "bad name '__class__'"),
        (put("fitted", "n_components", 7), "bad name 'n_components'"),
        (put("fitted", "vocabulary_", {"$names": ["a"]}), "vocabulary_ must hold 25 names"),
        (put("fitted", "topic_labels_", {"$names": ["a"] * 4}), "topic_labels_ must hold 3 names"),
        (put("fitted", "topic_labels_", ["a", "b", "c"]), "topic_labels_ must hold 3 names of top"),
        (put("fitted", "_state", None), "_state is missing"),
        (put("fitted", "_model", {"$topics": {}}), "'topics' is damaged: .*'_power_sums"),
        (put("fitted", "_model", {"$os": {}}), "'os' is not known"),
        (put("fitted", "_model", {"$": {}}), "'' is not known"),
        (put(*LDA_MODEL, "n_topics", 10**9), "'latent_dirichlet' is damaged"),
        (put(*LDA_MODEL, "doc_topic_prior", [0.1, 0.2]), "doc_topic_prior must be of"),
        (put(*LDA_MODEL, "topic_word_prior", {"$float": "nan"}), "topic_word_prior must be pos"),
        (put(*LDA_MODEL, "max_iterations", -3), "max_iterations must be at least 1"),
        (put(*LDA_MODEL, "update", "magic"), "update must be of Literal"),
        (put(*LDA_MODEL, "word_power", 0.2), "damaged: word_power must be from 0.5 to 1"),
        (put(*LDA_MODEL, "settled", {}), "settled must be of"),
        (put(*TOPICS, "_sums", {"$tuple": []}), "_sums must be of"),
        (put(*TOPICS, "offset", {"$float": "nan"}), "must be proper distributions"),
        (put(*TOPICS, "_values", "$array", "missing"), "array 'missing' is missing"),
        (put("arrays", 0), r"model\.safetensors: it has not the arrays"),
        (put("fitted", "_state", "$state", "heat", None), "heat must be of Heat"),
        (put("fitted", "history_", {"$history": {}}), "damaged"),
    ],
)
def test_forged_descriptions_are_refused(tmp_path, fitted, change, message):
    estimator, _ = fitted("lda")
    estimator.save(tmp_path / "model")
    edit_config(tmp_path / "model", change)
    with pytest.raises(StorageError, match=message) as caught:
        tempering.load(tmp_path / "model")
    assert str(tmp_path / "model") in str(caught.value)


@pytest.mark.parametrize("name", ["gaussian", "bernoulli", "poisson", "factorial"])
@pytest.mark.parametrize("value", [4, 1])
def test_another_number_of_components_is_refused(tmp_path, fitted, name, value):
    estimator, _ = fitted(name)
    estimator.save(tmp_path / "model")
    edit_config(tmp_path / "model", put("parameters", "n_components", value))
    with pytest.raises(StorageError):
        tempering.load(tmp_path / "model")
    edit_config(tmp_path / "model", put("parameters", "n_components", estimator.n_components))
    tempering.load(tmp_path / "model")
    edit_config(tmp_path / "model", put("fitted", "n_features_in_", estimator.n_features_in_ + 1))
    with pytest.raises(StorageError):
        tempering.load(tmp_path / "model")


def test_an_edited_description_is_told(tmp_path, fitted):
    estimator, _ = fitted("lda")
    estimator.save(tmp_path / "model")
    edit_config(tmp_path / "model", put("parameters", "verbose", 1), signed=False)
    with pytest.raises(StorageError, match=r"damaged, or was edited.*set_params"):
        tempering.load(tmp_path / "model")


EDITED = {
    "gaussian": CASES["gaussian"],
    "lines": (
        RegressionMixture(2, random_state=0, max_iter=10),
        clusters()[:, :1],
        clusters()[:, 1],
    ),
    "loadings": CASES["loadings"],
    "count factors": CASES["count factors"],
}


@pytest.mark.parametrize("name", EDITED)
def test_edited_attributes_are_refused_by_name(tmp_path, name):
    estimator, *data = EDITED[name]
    copy.deepcopy(estimator).fit(*data).save(tmp_path / "model")
    tree, n_tried = read_tree(tmp_path / "model", "model"), 0
    for attribute, value in tree["fitted"].items():
        free = attribute.endswith("prior_") or attribute == "inverse_temperatures_"
        if not isinstance(value, np.ndarray) or value.ndim == 0 or free:
            continue
        n_tried += 1
        holed = value.copy()
        holed.flat[-1] = np.nan
        for edited, message in (
            (holed, "finite numbers"),
            (np.full_like(value, np.inf), "finite numbers"),
            (value[:-1].copy(), "of the shape"),
            (value[None], "of the shape"),
        ):
            fitted = {**tree["fitted"], attribute: edited}
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(tmp_path / "edited")
            write_tree(tmp_path / "edited", "model", {**tree, "fitted": fitted})
            with pytest.raises(StorageError, match=rf"{attribute} must .*{message}"):
                tempering.load(tmp_path / "edited")
    assert n_tried


@pytest.mark.parametrize("file", ["config.json", "model.safetensors"])
def test_missing_files_are_named(tmp_path, fitted, file):
    estimator, _ = fitted("lda")
    estimator.save(tmp_path / "model", [f"w{i}" for i in range(25)])
    (tmp_path / "model" / file).unlink()
    with pytest.raises(StorageError, match=rf"{file}.*missing"):
        tempering.load(tmp_path / "model")


def everything(estimator, X):
    """Whatever a loaded estimator is asked must not fail."""
    predictions(estimator, X)
    if hasattr(estimator, "partial_fit"):
        estimator.partial_fit(X)


def paths_of(value, path=()):
    """The way to each value in a tree of JSON."""
    yield path
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, part in items:
        yield from paths_of(part, (*path, key))


STRANGE = [None, True, 0, -1, 2**70, 0.5, 1e300, "", "x", [], {}, [1], {"$float": "nan"}]


def forgeries(fitted, tmp_path):
    """Each value of the descriptions of some models, and something else to put there."""
    for name in FORGED:
        estimator, X = fitted(name)
        folder = tmp_path / name
        estimator.save(folder)
        text = (folder / "config.json").read_text()
        for place in paths_of(json.loads(text)):
            if place and place != ("checksum",):
                yield from ((folder, text, X, place, value) for value in STRANGE)


def forge(cases):
    """A description that was changed and signed again: refused, or harmless."""
    refused = 0
    for folder, text, X, place, value in cases:
        (folder / "config.json").write_text(text)
        edit_config(folder, put(*place, copy.deepcopy(value)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                loaded = tempering.load(folder)
            except StorageError:
                refused += 1
            else:
                everything(loaded, X[:10])
    assert refused > len(cases) / 2


def test_forged_values_are_refused_or_harmless(tmp_path, fitted):
    cases = list(forgeries(fitted, tmp_path))
    chosen = np.random.default_rng(0).choice(len(cases), 100, replace=False)
    forge([cases[i] for i in chosen])


def damage(tmp_path, fitted, n):
    """Bytes of any of the files are changed: refused, or the same model."""
    rng = np.random.default_rng(0)
    estimator, _ = fitted("lda variational")
    folder = tmp_path / "model"
    estimator.save(folder, [f"w{i}" for i in range(25)])
    contents = {path: path.read_bytes() for path in folder.iterdir()}
    files = sorted(contents)
    refused = 0
    for number in range(n):
        path = files[number % len(files)]
        path.write_bytes(mutate(contents[path], rng))
        try:
            loaded = tempering.load(folder)
        except StorageError:
            refused += 1
        else:
            np.testing.assert_array_equal(loaded.components_, estimator.components_)
        path.write_bytes(contents[path])
    assert refused > 0.9 * n


def test_damaged_models_are_told(tmp_path, fitted):
    damage(tmp_path, fitted, 100)


@pytest.mark.slow
def test_many_damaged_models_are_told(tmp_path, fitted):
    damage(tmp_path, fitted, 3000)


# Checkpoints of estimators.


class Killed(Exception):
    """What ends a fit in these tests."""


def kill_at_write(monkeypatch, number):
    """Kill the process, as it were, at the write of so many checkpoints from now."""
    from tempering.inference import checkpoint as checkpoints

    seen = []

    def write(*arguments):
        seen.append(arguments)
        if len(seen) == number:
            raise Killed
        original(*arguments)

    original = checkpoints.write_tree
    monkeypatch.setattr(checkpoints, "write_tree", write)
    return lambda: monkeypatch.setattr(checkpoints, "write_tree", original)


@pytest.mark.parametrize(
    "name", ["lda learned priors", "lda local", "gaussian", "bernoulli", "poisson", "factorial"]
)
def test_an_estimator_goes_on_from_its_checkpoint(tmp_path, fitted, monkeypatch, name):
    whole, X = fitted(name)
    checkpoint = Checkpoint(tmp_path, every_steps=1)
    for kill_at in (3, 6):
        mend = kill_at_write(monkeypatch, kill_at)
        with contextlib.suppress(Killed):
            copy.deepcopy(CASES[name][0]).fit(X, checkpoint=checkpoint)
        mend()
    resumed = copy.deepcopy(CASES[name][0]).fit(X, checkpoint=checkpoint)
    assert_same_predictions(resumed, whole, X)
    np.testing.assert_array_equal(resumed.history_["elbo"], whole.history_["elbo"])


def test_a_fit_without_a_seed_goes_on_with_its_own(tmp_path, monkeypatch):
    X = documents()
    mend = kill_at_write(monkeypatch, 4)
    with pytest.raises(Killed):
        lda(random_state=None).fit(X, checkpoint=Checkpoint(tmp_path, every_steps=1))
    mend()
    (before, *_) = sorted(Path(tmp_path).glob("checkpoint-*"))
    resumed = lda(random_state=None).fit(X, checkpoint=tmp_path)
    assert not before.exists()
    again = lda(random_state=None).fit(X, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.components_, again.components_)
    other = lda(random_state=None).fit(X, checkpoint=tmp_path, resume=False)
    assert not np.array_equal(resumed.components_, other.components_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 4}, "other parameters: .*n_topics"),
        ({"learning_decay": 0.8}, "other parameters: learning_rate.rule.decay"),
        ({"random_state": 1}, "other parameters: .*seed"),
    ],
)
def test_another_estimator_s_checkpoint_is_refused(tmp_path, options, message):
    lda().fit(documents(), checkpoint=tmp_path)
    with pytest.raises(StorageError, match=message):
        lda().set_params(**options).fit(documents(), checkpoint=tmp_path)
    with pytest.raises(StorageError, match="other data"):
        lda().fit(documents(59), checkpoint=tmp_path)
    lda(n_jobs=2, verbose=1).fit(documents(), checkpoint=tmp_path)


class OneOfMyOwn(LatentDirichletAllocation):
    """An estimator that tempering does not know."""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_components": 7}, "the parameters ask for \\(7, 25\\)"),
        ({"max_iter": -1}, "max_iter"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(tmp_path, fitted, change, message):
    estimator = fitted("lda")[0].set_params(**change)
    with pytest.raises(ValueError, match=f"not saved, as it could not be loaded: .*{message}"):
        estimator.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_an_estimator_that_load_does_not_know_is_not_saved(tmp_path):
    estimator = OneOfMyOwn(2, max_iter=1, random_state=0).fit(documents())
    with pytest.raises(ValueError, match=r"not saved.*unknown class 'OneOfMyOwn'"):
        estimator.save(tmp_path / "model")
