"""A fit on a cluster of processes has the bits of one in one process, whatever happens to them."""

import gc
import os
import pickle
import signal
import socketserver
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

import tempering
from on_disk import on_disk
from tempering import (
    BayesianGaussianMixture,
    BernoulliMixture,
    Checkpoint,
    FactorialMixture,
    LatentDirichletAllocation,
)
from tempering.datasets import make_lda
from tempering.families import Dirichlet, IsotropicGaussian
from tempering.inference.executors import ClusterLost
from tempering.models import Mixture

distributed = pytest.importorskip("distributed")

from tempering.cluster import DaskExecutor  # noqa: E402

#: Runs a cluster until it is killed, or its standard input is closed.
CLUSTER = """
import sys
from distributed import LocalCluster

if __name__ == "__main__":
    cluster = LocalCluster(
        n_workers=int(sys.argv[1]), threads_per_worker=1, dashboard_address=":0", silence_logs=50
    )
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


class Cluster:
    """A scheduler and some workers, in processes of their own."""

    def __init__(self, folder, n_workers, path=None):
        script = folder / "cluster.py"
        script.write_text(CLUSTER)
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(n_workers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ if path is None else {**os.environ, "PYTHONPATH": str(path)},
        )
        self.address = self.process.stdout.readline().strip()
        assert self.address.startswith("tcp://")

    def kill(self):
        """As a machine that fails: the scheduler is gone, and the workers with it."""
        self.process.kill()
        self.process.communicate()

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.kill()


@pytest.fixture(scope="module")
def executor(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), 2)
    executor = DaskExecutor(cluster.address)
    executor.client.wait_for_workers(2)
    yield executor
    executor.close()
    cluster.stop()


@pytest.fixture
def mortal(executor):
    """A worker of it may be killed: Dask starts another in its place."""
    yield executor
    executor.client.wait_for_workers(2)


@pytest.fixture
def one_worker(executor, monkeypatch):
    """The same cluster as if it had one worker."""
    all_workers = executor._threads

    def first():
        worker = min(all_workers())
        return {worker: all_workers()[worker]}

    def use():
        monkeypatch.setattr(executor, "_threads", first)

    return use


def documents(n=2500):
    return make_lda(n, 5, n_words=300, document_length=30, seed=1).counts


def table(n=600):
    rng = np.random.default_rng(0)
    return rng.normal(4.0 * rng.integers(0, 3, size=(n, 1)), 0.7, size=(n, 3))


def same_state(one, other):
    """All that was learned, bit for bit."""
    first, second = one._state.posterior, other._state.posterior
    if hasattr(first, "parameters"):
        assert_array_equal(first.parameters(), second.parameters())
        assert_array_equal(one.doc_topic_prior_, other.doc_topic_prior_)
    else:
        for name in first:
            assert_array_equal(first[name], second[name])
        assert one.elbo_ == other.elbo_
    for column in ("temperature", "elbo", "tempered_elbo"):
        assert_array_equal(one.history_[column], other.history_[column])


TOPICS = {
    "SVI": {"tempering": None, "evaluate_every": 1},
    "VT": {"tempering": "variational", "doc_topic_prior": "auto"},
    "LVT": {"tempering": "local"},
    "default": {},
}


@pytest.mark.parametrize("name", TOPICS)
def test_topics_have_the_bits_of_one_process(executor, one_worker, name):
    X = documents()
    lda = LatentDirichletAllocation(
        5, batch_size=1250, max_iter=2, random_state=0, n_jobs=1, **TOPICS[name]
    )
    alone = clone(lda).fit(X)
    two = clone(lda).set_params(executor=executor).fit(X)
    same_state(alone, two)
    one_worker()
    same_state(alone, clone(lda).set_params(executor=executor).fit(X))


MIXTURES = {
    "GMM": BayesianGaussianMixture(3, max_iter=30, random_state=0),
    "GMM, VT": BayesianGaussianMixture(3, max_iter=10, tempering="variational", random_state=0),
    "GMM in minibatches": BayesianGaussianMixture(3, batch_size=300, max_iter=3, random_state=0),
    "Bernoulli, LVT": BernoulliMixture(3, tempering="local", max_iter=10, random_state=0),
    "FMM": FactorialMixture(3, max_iter=20, random_state=0),
    "FMM, mean-field": FactorialMixture(3, local="mean-field", max_iter=10, random_state=0),
}


def cut_finely(monkeypatch):
    """Shards of mixtures are small, so that some hundred rows are several of them."""
    monkeypatch.setattr("tempering.models.base.Model.shard_size", 100)
    monkeypatch.setattr("tempering.models.factorial_mixture.SHARD_ENTRIES", 512 * 3)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ("GMM", "FMM") else [pytest.mark.slow])
        for name in MIXTURES
    ],
)
def test_mixtures_have_the_bits_of_one_process(executor, one_worker, monkeypatch, name):
    cut_finely(monkeypatch)
    X = table(1300)
    alone = clone(MIXTURES[name]).fit(X)
    two = clone(MIXTURES[name]).set_params(executor=executor).fit(X)
    same_state(alone, two)
    one_worker()
    same_state(alone, clone(MIXTURES[name]).set_params(executor=executor).fit(X))


def slow_mixture(seconds):
    """A model of one's own, whose class no worker could import."""

    class SlowMixture(Mixture):
        shard_size = 50

        def local_step(self, data, expectations, inverse_temperature):
            time.sleep(seconds)
            return super().local_step(data, expectations, inverse_temperature)

    return SlowMixture(
        IsotropicGaussian(3, 1.0), Dirichlet(3), np.ones(3), np.repeat([0.0, 0.1], [3, 1])
    )


def fit_slowly(executor, seconds, at_step=lambda number: None, batch_size=200):
    return tempering.fit(
        slow_mixture(seconds),
        table(400),
        batch_size=batch_size,
        max_passes=4,
        progress=False,
        executor=executor,
        callbacks=[lambda report: at_step(report.record.step)],
        n_threads=1,
    )


def same_result(one, other):
    for name in one.posterior:
        assert_array_equal(one.posterior[name], other.posterior[name])
    assert one.elbo == other.elbo


def in_the_next_step(action, at_step):
    """What a callback does to strike while the workers compute the step after this one."""

    def callback(step):
        if step == at_step:
            threading.Timer(0.15, action).start()

    return callback


@pytest.mark.parametrize(
    "batch_size",
    [pytest.param(200, marks=pytest.mark.slow), None],
    ids=["minibatches", "kept by workers"],
)
def test_a_worker_that_is_killed_within_a_step_changes_nothing(mortal, batch_size):
    expected = fit_slowly(None, 0.0, batch_size=batch_size)
    pids = mortal.client.run(os.getpid)
    victim = min(pids)
    result = fit_slowly(
        mortal,
        0.1,
        in_the_next_step(lambda: os.kill(pids[victim], signal.SIGKILL), 1),
        batch_size,
    )
    same_result(expected, result)
    assert victim not in mortal.client.nthreads()


@pytest.mark.slow
def test_a_worker_that_is_killed_between_steps_changes_nothing(mortal, tmp_path):
    """What it held of a corpus on disk is read by others."""
    source = on_disk(tmp_path, documents(), 1250, block_size=400)
    lda = LatentDirichletAllocation(
        5, batch_size=1250, max_iter=3, tempering=None, random_state=0, n_jobs=1
    )
    expected = clone(lda).fit(source)
    pids = mortal.client.run(os.getpid)
    victim = min(pids)

    def strike(report):
        if report.record.step == 2:
            os.kill(pids[victim], signal.SIGKILL)

    same_state(expected, clone(lda).set_params(executor=mortal).fit(source, callbacks=[strike]))
    assert victim not in mortal.client.nthreads()


@pytest.mark.slow
def test_a_slow_worker_changes_nothing(executor):
    expected = fit_slowly(None, 0.0)
    pid = max(executor.client.run(os.getpid).items())[1]

    def hold_up():
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1.0)
        os.kill(pid, signal.SIGCONT)

    same_result(expected, fit_slowly(executor, 0.1, in_the_next_step(hold_up, 1)))


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_told_and_the_fit_resumes(executor, tmp_path):
    X, kept = documents(), tmp_path / "kept"
    lda = LatentDirichletAllocation(
        5, batch_size=1250, max_iter=3, tempering="local", random_state=0, n_jobs=1
    )
    expected = clone(lda).fit(X)
    cluster = Cluster(tmp_path, 1)
    lost = DaskExecutor(cluster.address, timeout=5)

    def strike(report):
        if report.record.step == 2:
            threading.Timer(0.02, cluster.kill).start()

    started = time.perf_counter()
    with pytest.raises(ClusterLost) as caught:
        clone(lda).set_params(executor=lost).fit(
            X, checkpoint=Checkpoint(kept, every_steps=1), callbacks=[strike]
        )
    assert cluster.address in str(caught.value)
    assert str(kept) in str(caught.value)
    assert "call fit again" in str(caught.value)
    assert time.perf_counter() - started < 60
    lost.close()

    steps = []
    resumed = clone(lda).set_params(executor=executor)
    resumed.fit(
        X,
        checkpoint=Checkpoint(kept, every_steps=1),
        callbacks=[lambda report: steps.append(report.record.step)],
    )
    assert steps[0] >= 2
    same_state(expected, resumed)


def test_without_a_checkpoint_the_loss_says_so():
    with pytest.raises(
        ClusterLost, match=r"no Dask scheduler answers at tcp://127.0.0.1:9.*Nothing"
    ):
        LatentDirichletAllocation(2, executor=DaskExecutor("tcp://127.0.0.1:9", timeout=0.5)).fit(
            documents(20)
        )


def test_what_listens_but_is_no_scheduler_is_told_as_such(monkeypatch):
    """As the dashboard of Dask, one port further, does.

    Nothing of the client is left: collected in the thread of the next one, it would block it.
    """

    class Dashboard(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(8)
            self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socketserver.TCPServer(("127.0.0.1", 0), Dashboard) as server:
        threading.Thread(target=server.serve_forever).start()
        address = f"tcp://127.0.0.1:{server.server_address[1]}"
        with pytest.raises(ClusterLost, match=f"no Dask scheduler answers at {address}: start"):
            DaskExecutor(address, timeout=0.5).batch_size()
        server.shutdown()

    factory = distributed.utils.get_loop_factory
    monkeypatch.setattr(
        distributed.utils, "get_loop_factory", lambda: gc.collect() >= 0 and factory()
    )
    loop = distributed.utils.LoopRunner()
    loop.start()
    loop.stop()


@pytest.mark.slow
def test_a_loss_before_the_first_checkpoint_does_not_ask_for_one(tmp_path):
    executor = DaskExecutor("tcp://127.0.0.1:9", timeout=0.5)
    lda = LatentDirichletAllocation(3, executor=executor, random_state=0)
    with pytest.raises(ClusterLost) as caught:
        lda.fit(documents(20), checkpoint=tmp_path / "kept")
    told = str(caught.value)
    assert "give it a checkpoint" not in told
    assert f"The checkpoint {tmp_path / 'kept'} holds nothing of the fit yet" in told
    assert not (tmp_path / "kept").exists()


#: Python reads it when it starts, in workers too.
WITHOUT = """
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "tempering":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Without())
"""

#: The package as another version would be, but for all that is in it.
OTHER = """
import sys, types

for name in ("tempering", "tempering.cluster", "tempering.cluster.dask_source"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["tempering"].__version__ = "0.0.1"
"""


@pytest.mark.parametrize(
    ("site", "says"),
    [
        (WITHOUT, "says: No module named 'tempering'"),
        pytest.param(OTHER, "has tempering 0.0.1", marks=pytest.mark.slow),
    ],
)
def test_a_worker_without_the_package_is_named(tmp_path, site, says):
    (tmp_path / "sitecustomize.py").write_text(site)
    cluster = Cluster(tmp_path, 1, path=tmp_path)
    executor = DaskExecutor(cluster.address)
    with pytest.raises(ImportError) as caught:
        LatentDirichletAllocation(3, executor=executor).fit(documents(40))
    (worker,) = executor.client.scheduler_info()["workers"]
    assert str(caught.value).startswith(f"the worker {worker} of {cluster.address} {says}.")
    assert f"install it there (pip install 'tempering[distributed]=={tempering.__version__}')" in (
        str(caught.value)
    )
    executor.close()
    cluster.stop()


def test_what_a_worker_raises_is_raised_here(executor):
    def fail(number):
        raise ZeroDivisionError(f"item {number}")

    with pytest.raises(ZeroDivisionError, match="item 0"):
        executor.map(fail, range(3))
    assert executor.map(lambda number: number**2, range(5)) == [0, 1, 4, 9, 16]
    assert executor.add_up(lambda number: number, range(50)) == 1225
    assert executor.map(fail, []) == []


def test_workers_keep_nothing_after_a_fit(executor):
    fit_slowly(executor, 0.0)
    deadline = time.monotonic() + 20
    while any(executor.client.has_what().values()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(executor.client.has_what().values())


def test_an_executor_is_a_parameter_like_others(executor, tmp_path):
    lda = LatentDirichletAllocation(3, executor=executor, batch_size=1250, random_state=0)
    assert clone(lda).get_params()["executor"] is executor
    other = pickle.loads(pickle.dumps(executor))
    assert repr(other) == repr(executor)
    assert other.batch_size(10) == 20
    other.close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lda.fit(documents(300)).save(tmp_path / "model")
    loaded = tempering.load(tmp_path / "model")
    assert loaded.executor is None
    assert_array_equal(loaded.components_, lda.components_)
    with pytest.raises(ValueError, match="executor"):
        LatentDirichletAllocation(3, executor="tcp://somewhere").fit(documents(30))


def test_one_shard_for_several_workers_is_warned_of(executor):
    executor._warned = False
    with pytest.warns(UserWarning, match="a batch_size of 2048 would occupy them all"):
        LatentDirichletAllocation(3, executor=executor, batch_size=200, max_iter=1).fit(
            documents(400)
        )


def test_a_stream_of_documents_is_solved_by_workers_too(executor):
    X = documents()
    models = [
        LatentDirichletAllocation(5, batch_size=1250, random_state=0, executor=e)
        for e in (None, executor)
    ]
    for model in models:
        model.partial_fit(X).partial_fit(X)
    assert_array_equal(models[0].components_, models[1].components_)


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_any_number_of_processes_gives_the_bits_of_one(tmp_path, monkeypatch, n_workers):
    cluster = Cluster(tmp_path, n_workers)
    executor = DaskExecutor(cluster.address)
    executor.client.wait_for_workers(n_workers)
    X = documents(9000)
    for settings in TOPICS.values():
        lda = LatentDirichletAllocation(
            5, batch_size=4500, max_iter=2, random_state=0, n_jobs=2, **settings
        )
        same_state(clone(lda).fit(X), lda.set_params(executor=executor).fit(X))
    cut_finely(monkeypatch)
    for mixture in MIXTURES.values():
        alone = clone(mixture).fit(table(1300))
        same_state(alone, clone(mixture).set_params(executor=executor).fit(table(1300)))
    executor.close()
    cluster.stop()


def test_a_search_has_the_bits_of_one_process(executor):
    """Runs are solved by the workers; what operators look at beside them is here."""
    rng = np.random.default_rng(0)
    centres = np.array([(x, y) for x in range(4) for y in range(4)])
    data = np.repeat(centres, 20, axis=0) + 0.1 * rng.normal(size=(320, 2))
    likelihood = IsotropicGaussian(2, 0.01)
    prior = likelihood.conjugate.natural(np.zeros(2), 0.1)
    model = Mixture(likelihood, Dirichlet(16), np.ones(16), prior)
    model.shard_size = 64
    here, there = (
        tempering.search(model, data, budget=3, seed=1, executor=each) for each in (None, executor)
    )
    assert there.elbo == here.elbo
    assert [trial[:3] for trial in there.trail] == [trial[:3] for trial in here.trail]
    assert_array_equal(there.posterior.components, here.posterior.components)
