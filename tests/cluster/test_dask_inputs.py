"""What a fit on a cluster takes: arrays, corpora on disk that workers read, bags and dataframes.

The workers are threads of this process here; ``test_dask_cluster`` has them in processes.
"""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from typer.testing import CliRunner

from on_disk import on_disk
from tempering import LatentDirichletAllocation
from tempering.cli.app import app
from tempering.corpus import Corpus, open_source, write
from tempering.corpus.parquet import ParquetRows
from tempering.datasets import make_lda
from tempering.inference.sources import RowReference

distributed = pytest.importorskip("distributed")

from tempering.cluster import DaskExecutor, DaskSource, dask_executor, dask_source  # noqa: E402

N, V = 3000, 400


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def executor(client):
    return DaskExecutor(client)


@pytest.fixture(scope="module")
def counts():
    counts = make_lda(N, 5, n_words=V, document_length=30, seed=2).counts
    counts = counts.tolil()
    counts[0, V - 1] = 1  # so that collections know how many words there are
    return counts.tocsr()


def topics(**settings):
    settings = {"batch_size": 1500, "max_iter": 2, "random_state": 0, "n_jobs": 1, **settings}
    return LatentDirichletAllocation(5, **settings)


def documents_of(counts):
    """The words of each document, and how often they occur."""
    cuts = counts.indptr[1:-1]
    return list(zip(np.split(counts.indices, cuts), np.split(counts.data, cuts)))


@pytest.fixture(scope="module")
def path(counts, tmp_path_factory):
    """The documents in a Parquet file."""
    import pyarrow
    from pyarrow import parquet

    ids, numbers = zip(*documents_of(counts))
    path = tmp_path_factory.mktemp("parquet") / "corpus.parquet"
    table = pyarrow.table({"ids": ids, "counts": numbers})
    parquet.write_table(table, path, row_group_size=500)
    return path


@pytest.mark.parametrize("tempering", ["auto", "variational", "local"])
def test_workers_read_a_parquet_file_themselves(executor, path, monkeypatch, tempering):
    alone = topics(tempering=tempering).fit(open_source(path, 1500))
    source = open_source(path, 1500)
    read_here = []
    monkeypatch.setattr(
        RowReference, "__getattr__", lambda self, name: read_here.append(name) or 1 / 0
    )
    shared = topics(tempering=tempering, executor=executor).fit(source)
    assert_array_equal(alone.components_, shared.components_)
    assert not read_here


def test_workers_read_a_whole_batch(executor, counts, tmp_path):
    for batch_size in (1500, N):
        source = on_disk(tmp_path, counts, batch_size, block_size=700)
        alone = topics().fit(source)
        assert_array_equal(alone.components_, topics(executor=executor).fit(source).components_)


def test_a_path_that_workers_do_not_see_is_named(executor, counts, tmp_path):
    source = on_disk(tmp_path, counts, 1500, block_size=700)
    source.files.path = tmp_path / "elsewhere"
    with pytest.raises(
        OSError, match=r"elsewhere.*each worker must see the corpus at the same path"
    ):
        topics(executor=executor, update="variational", init="random").fit(source)


def test_a_corpus_in_memory_is_taken(executor, counts):
    alone = topics().fit(counts)
    assert_array_equal(alone.components_, topics(executor=executor).fit(Corpus(counts)).components_)
    assert_array_equal(alone.components_, topics().fit(Corpus(counts)).components_)


@pytest.mark.slow
def test_many_runs_are_added_up_by_the_workers(executor, counts, monkeypatch):
    monkeypatch.setattr("tempering.models.lda.model.LatentDirichlet.shard_size", 64)
    monkeypatch.setattr(dask_executor, "FAN_IN", 2)
    alone = topics(tempering="local").fit(counts)
    n_fetched = []
    gather = DaskExecutor._gather
    monkeypatch.setattr(
        DaskExecutor,
        "_gather",
        lambda self, futures, used: n_fetched.append(len(futures)) or gather(self, futures, used),
    )
    shared = topics(tempering="local", executor=executor).fit(counts)
    assert_array_equal(alone.components_, shared.components_)
    assert n_fetched
    assert max(n_fetched) <= 2


@pytest.mark.parametrize("batch_size", [N, 1500])
@pytest.mark.slow
def test_data_that_come_again_at_each_step_are_sent_once(
    client, executor, counts, monkeypatch, batch_size
):
    n_rows = []
    send = DaskExecutor._send

    def rows_of(thing):
        """In a block, or in shards that go with their rows."""
        if isinstance(thing, list):
            return sum(data.shape[0] for (_, data), _ in thing if hasattr(data, "shape"))
        return thing.shape[0] if hasattr(thing, "shape") else 0

    def count(self, contents):
        n_rows.extend(rows_of(thing) for thing, _ in contents)
        return send(self, contents)

    monkeypatch.setattr("tempering.models.lda.model.LatentDirichlet.shard_size", 500)
    monkeypatch.setattr(dask_source, "ROWS_OF_A_BLOCK", 700)
    monkeypatch.setattr(DaskExecutor, "_send", count)
    lda = topics(executor=executor, batch_size=batch_size, max_iter=4, tempering=None)
    shared = lda.fit(counts)
    assert sum(n_rows) == (N if batch_size == N else 4 * N)
    assert_array_equal(
        shared.components_, clone(lda).set_params(executor=None).fit(counts).components_
    )
    deadline = time.monotonic() + 20
    while any(client.has_what().values()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(client.has_what().values())


@pytest.mark.slow
def test_fits_in_several_threads_share_an_executor(executor, counts, tmp_path):
    data = [counts, counts[:2000], on_disk(tmp_path, counts, 1500, block_size=700)]
    settings = {"batch_size": N, "tempering": None}  # arrays are kept by the workers
    with ThreadPoolExecutor() as pool:
        shared = list(pool.map(lambda X: topics(executor=executor, **settings).fit(X), data))
    for X, model in zip(data, shared):
        assert_array_equal(topics(**settings).fit(X).components_, model.components_)


@pytest.mark.parametrize("kind", ["pairs", "dict"])
def test_a_bag_of_token_counts(client, executor, counts, tmp_path, kind):
    from dask import bag

    make = list if kind == "pairs" else dict
    documents = [make(zip(ids.tolist(), n.tolist())) for ids, n in documents_of(counts)]
    bags = bag.from_sequence(documents, npartitions=6)
    source = DaskSource(bags, client, 1500)
    assert source.shape == (N, V)
    assert source.n_tokens == counts.sum()
    # As the same blocks have it that lie on the disk.
    alone = topics().fit(on_disk(tmp_path, counts, 1500, block_size=N // 6))
    shared = topics(executor=executor).fit(bags)
    assert_array_equal(alone.components_, shared.components_)
    assert_array_equal(alone.components_, topics().fit(source).components_)  # fetched


def test_a_dataframe_with_ids_and_counts(client, executor, path):
    dataframe = pytest.importorskip("dask.dataframe")
    frame = dataframe.read_parquet(path, split_row_groups=True)
    source = DaskSource(frame, client, 1500, n_words=V + 7)
    assert source.shape == (N, V + 7)
    chosen = source.sample(50, np.random.default_rng(3))
    expected = open_source(path).sample(50, np.random.default_rng(3))
    assert_array_equal(chosen.toarray()[:, :V], expected.toarray())
    alone = topics().fit(open_source(path, 1500))
    shared = topics(executor=executor).fit(frame)
    assert_array_equal(alone.components_, shared.components_)
    with pytest.raises(ValueError, match="ids is missing"):
        DaskSource(frame[["counts"]], client)
    with pytest.raises(ValueError, match=f"n_words=10, but a document has the word {V - 1}"):
        DaskSource(frame, client, n_words=10)


def test_what_holds_no_documents_is_refused(client, executor):
    import dask

    array = pytest.importorskip("dask.array").from_array(np.ones((4, 3), int))
    for X in (array, dask.delayed(np.ones)((4, 3))):
        with pytest.raises(ValueError, match=f"bag or dataframe, or .* got {type(X).__name__}"):
            topics(executor=executor).fit(X)
    # Dask makes text of the lists of a frame of pandas.
    pandas, dataframe = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    table = pandas.DataFrame({"ids": [[0, 2], [1]], "counts": [[3, 1], [2]]})
    with pytest.raises(ValueError, match=r"must hold lists, .*'dataframe.convert-string'"):
        DaskSource(dataframe.from_pandas(table, npartitions=1), client)
    with dask.config.set({"dataframe.convert-string": False}):
        frame = dataframe.from_pandas(table, npartitions=1)
    assert DaskSource(frame, client, 1).shape == (2, 3)
    with distributed.Client(client.cluster, set_as_default=False) as closed:
        pass
    with pytest.raises(ValueError, match="client must be running; it is closed"):
        DaskSource(frame, closed)


def test_a_bag_without_a_cluster_or_without_words_is_refused(client):
    from dask import bag

    empty = bag.from_sequence([{}, {}], npartitions=2)
    with pytest.raises(ValueError, match=r"pass executor=tempering\.cluster\.DaskExecutor"):
        topics().fit(empty)
    with pytest.raises(ValueError, match="at least one word"):
        DaskSource(empty, client)


def test_a_fit_begun_on_a_cluster_goes_on_without_it(executor, path, tmp_path):
    """A checkpoint belongs to the data and the parameters, not to who computed it."""
    lda = topics(tempering="local")
    expected = clone(lda).fit(open_source(path, 1500))

    def stop(report):
        if report.record.step == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        clone(lda).set_params(executor=executor).fit(
            open_source(path, 1500), checkpoint=tmp_path / "kept", callbacks=[stop]
        )
    lda.fit(open_source(path, 1500), checkpoint=tmp_path / "kept")
    assert_array_equal(expected.components_, lda.components_)


def test_a_worker_reads_a_block_once_a_window(executor, counts, tmp_path, monkeypatch):
    reads = []
    rows = ParquetRows.rows

    def count(self, start, stop):
        reads.append((start, stop))
        return rows(self, start, stop)

    source = on_disk(tmp_path, counts, 1500, block_size=500, window_blocks=6)
    lda = topics(executor=executor, max_iter=3, update="variational", init="random")
    monkeypatch.setattr(ParquetRows, "rows", count)
    lda.fit(source)
    assert len(reads) == 6


def test_the_command_line_takes_a_scheduler(client, counts, tmp_path):
    path = tmp_path / "corpus.parquet"
    write(path, Corpus(counts))
    arguments = ["fit", str(path), "-k", "5", "--passes", "2", "--batch-size", "1500", "--json"]
    runner = CliRunner()
    told = []
    for out, more in (("a", []), ("b", ["--scheduler", client.scheduler.address])):
        result = runner.invoke(app, [*arguments, "--out", str(tmp_path / out), *more])
        assert result.exit_code == 0, result.output
        told.append(json.loads(result.stdout))
    assert told[0]["topics"] == told[1]["topics"]
    models = [(tmp_path / out / "model.safetensors").read_bytes() for out in ("a", "b")]
    assert models[0] == models[1]
    nowhere = ["--scheduler", "tcp://127.0.0.1"]
    result = runner.invoke(app, [*arguments, "--out", str(tmp_path / "c"), *nowhere])
    assert result.exit_code == 1
    assert "no Dask scheduler answers at tcp://127.0.0.1: start one" in result.output
