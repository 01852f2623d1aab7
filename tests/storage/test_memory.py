"""Models and checkpoints take a small multiple of their files, whatever these claim."""

import json
import shutil
import warnings

import numpy as np
import pytest
from scipy import sparse

import tempering
from memory import assert_modest, measured, tracing
from mutations import mutate
from raw_trees import put_config, sign
from tempering import BayesianGaussianMixture, FactorialMixture, LatentDirichletAllocation
from tempering.inference.checkpoint import KIND
from tempering.storage.state import (
    ARRAYS,
    CONFIG,
    StorageError,
    checksum_of_arrays,
    read_tree,
    write_arrays,
    write_tree,
)

pytestmark = pytest.mark.filterwarnings("ignore::tempering.estimators.lda.TopicWarning")

#: Files of models are not packed: nothing but small buffers beyond what is in them.
ALLOWANCE = 4 << 20
#: What a size may be said to be.
LARGE = (10**9, 10**12, 2**62)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Models on disk by name, and the directory of a checkpoint."""
    folder = tmp_path_factory.mktemp("saved")
    rng = np.random.default_rng(0)
    counts = sparse.csr_matrix(rng.poisson(0.5, size=(60, 25)))
    rows = rng.normal(size=(40, 3))
    common = {"n_components": 2, "random_state": 0}
    topics = LatentDirichletAllocation(
        **common, max_iter=2, batch_size=20, doc_topic_prior="auto", tempering="variational"
    )
    topics.fit(counts, checkpoint=folder / "checkpoint")
    topics.save(folder / "topics", [f"word{i}" for i in range(25)])
    BayesianGaussianMixture(**common).fit(rows).save(folder / "gaussian")
    FactorialMixture(**common, max_iter=5).fit(rows).save(folder / "factorial")
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    """A copy that may be damaged."""
    shutil.copytree(saved, tmp_path / "saved")
    return tmp_path / "saved"


def newest(folder):
    """The newest checkpoint."""
    return max((folder / "checkpoint").glob("checkpoint-*"))


def read_checkpoint(path):
    return read_tree(path, KIND)


def take(path, reader=tempering.load, multiple=20):
    """Read, and hold the memory against all files; whether it was refused, and why."""
    n_bytes = sum(file.stat().st_size for file in path.iterdir())
    error = ""
    with measured() as peak, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            reader(path)
        except StorageError as refused:
            error = str(refused)
    assert_modest(peak, n_bytes, multiple, ALLOWANCE)
    return error


def damage(folder, n):
    """Bytes of files of models, and of the checkpoint, are changed; how often it was refused."""
    targets = [(path, tempering.load) for name in MODELS for path in (folder / name).iterdir()]
    targets += [(path, read_checkpoint) for path in newest(folder).iterdir()]
    targets.sort(key=str)
    rng = np.random.default_rng(0)
    refused = 0
    with tracing():
        for number in range(n):
            path, reader = targets[number % len(targets)]
            content = path.read_bytes()
            path.write_bytes(mutate(content, rng))
            refused += take(path.parent, reader) != ""
            path.write_bytes(content)
    return refused


MODELS = ("topics", "gaussian", "factorial")


def test_damaged_files(folder):
    assert damage(folder, 150) > 0.9 * 150


@pytest.mark.slow
def test_many_damaged_files(folder):
    refused = damage(folder, 4000)
    print(f"4000 damaged models and checkpoints, of which {refused} were refused")
    assert refused > 0.9 * 4000


def sizes_in(value, path=()):
    """The way to each whole number in a tree of JSON."""
    if isinstance(value, int) and not isinstance(value, bool):
        yield path
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, part in items:
        yield from sizes_in(part, (*path, key))


def put(tree, path, value):
    *way, last = path
    for key in way:
        tree = tree[key]
    tree[last] = value


def claim(folder, chosen):
    """Sizes are said to be large, with checksums as if they had been written so."""
    cases = []
    readers = {folder / name: tempering.load for name in MODELS}
    readers[newest(folder)] = read_checkpoint
    for place in readers:
        text = (place / CONFIG).read_text()
        cases += [(place, text, path) for path in sizes_in(json.loads(text))]
    cases = [(*case, value) for case in cases for value in LARGE if case[2] != ("checksum",)]
    with tracing():
        for place, text, path, value in chosen(cases):
            tree = json.loads(text)
            put(tree, path, value)
            put_config(place, tree)
            take(place, readers[place])
            (place / CONFIG).write_text(text)


@pytest.mark.slow
def test_claims_of_descriptions(folder):
    rng = np.random.default_rng(0)
    claim(folder, lambda cases: [cases[i] for i in rng.choice(len(cases), 80, replace=False)])


@pytest.mark.slow
def test_all_claims_of_descriptions(folder):
    claim(folder, list)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("value", LARGE)
def test_models_of_many_components_and_columns(folder, name, value):
    text = (folder / name / CONFIG).read_text()
    tree = json.loads(text)
    places = [
        way
        for way in sizes_in(tree)
        if way[-1] in ("n_components", "n_features_in_", "n_topics", "n_words", "n_features")
    ]
    assert len(places) >= 2
    # One at a time, and all that would agree with each other.
    for chosen in ([place] for place in places), [places]:
        for ways in chosen:
            tree = json.loads(text)
            for way in ways:
                put(tree, way, value)
            put_config(folder / name, tree)
            assert take(folder / name) != ""


def test_a_model_of_many_features_from_one_number(folder):
    """The constructor takes one probability for all features."""
    tree = json.loads((folder / "factorial" / CONFIG).read_text())
    model = tree["content"]["fitted"]["_model"]["$factorial_model"]
    model["n_features"], model["activation_probability"] = 10**9, 0.5
    put_config(folder / "factorial", tree)
    assert "activation_probability must be of" in take(folder / "factorial")


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 1_000_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"format": 1, "a": ' * 20_000,
        b"9" * 1_000_000,
        b'{"format": ' + b"9" * 4000 + b"}",
        b'"' + b"\\u0041" * 300_000 + b'"',
    ],
    ids=range(6),
)
def test_descriptions_that_are_deep_or_long(folder, text):
    (folder / "topics" / "config.json").write_bytes(text)
    assert take(folder / "topics") != ""


@pytest.mark.slow
@pytest.mark.parametrize("part", ["[]", '"ab"'])
def test_descriptions_that_are_wide(folder, part):
    """An empty list takes three bytes of a file, and 64 in memory; it is read, and made anew."""
    path = folder / "topics" / "config.json"
    for name in ("parameters", "not_stored"):
        tree = json.loads(path.read_text())
        tree["content"][name] = {"more": [json.loads(part)] * 50_000}
        path.write_text(json.dumps(sign(tree), separators=(",", ":")))
        assert take(folder / "topics", multiple=60) != ""


def header(length, text=b"{}"):
    return length.to_bytes(8, "little") + text


def tensors(shape, offsets, dtype="F64", content=b""):
    text = json.dumps({"a": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}).encode()
    return header(len(text), text) + content


@pytest.mark.parametrize(
    "content",
    [
        b"",
        header(10**12),
        header(2**64 - 1),
        header(99_999_999),
        header(1_000_000, b"[" * 1_000_000),
        tensors([10**12], [0, 8 * 10**12]),
        tensors([10**12], [0, 8], content=bytes(8)),
        tensors([2**40, 2**40], [0, 8], content=bytes(8)),
        tensors([0, 10**12], [0, 0]),
        tensors([1], [2**63, 2**63 + 8], content=bytes(8)),
        tensors([1] * 100_000, [0, 8], content=bytes(8)),
        tensors([1], [8, 0], content=bytes(8)),
        tensors([10**9], [0, 8], "F4", bytes(8)),
    ],
    ids=range(13),
)
def test_claims_of_arrays(folder, content):
    path = folder / "topics" / "model.safetensors"
    path.write_bytes(content)
    assert take(folder / "topics") != ""
    (newest(folder) / ARRAYS).write_bytes(content)
    assert take(newest(folder), read_checkpoint) != ""


def test_many_small_arrays(folder):
    names = {f"a{i}": np.zeros(0) for i in range(5000)}
    write_arrays(folder / "topics" / ARRAYS, names)
    assert "has not the arrays" in take(folder / "topics")
    tree = json.loads((folder / "topics" / CONFIG).read_text())
    put_config(folder / "topics", {**tree, "arrays": checksum_of_arrays(names)})
    assert "is missing" in take(folder / "topics")


def test_an_array_is_told_of_once(tmp_path):
    """Or else a description of a large one, again and again, would keep the reader busy."""
    write_tree(tmp_path / "tree", "pair", [np.zeros(3)])
    whole = json.loads((tmp_path / "tree" / CONFIG).read_text())
    put_config(tmp_path / "tree", {**whole, "content": 2 * whole["content"]})
    with pytest.raises(StorageError, match="'0' is missing"):
        read_tree(tmp_path / "tree", "pair")


@pytest.mark.slow
def test_more_words_and_steps_than_the_model_has(folder):
    path = folder / "topics" / "config.json"
    for name, part in (
        ("vocabulary_", {"$names": ["word"] * 100_000}),
        ("history_", {"$history": {"step": [1] * 100_000}}),
    ):
        tree = json.loads(path.read_text())
        tree["content"]["fitted"][name] = part
        before = path.read_text()
        put_config(folder / "topics", tree)
        assert take(folder / "topics", multiple=30) != ""
        path.write_text(before)


def test_a_large_model(tmp_path):
    """Where the allowance is small beside the files."""
    rng = np.random.default_rng(0)
    counts = sparse.random(200, 20_000, density=0.01, random_state=rng, format="csr")
    counts.data[:] = 1
    topics = LatentDirichletAllocation(30, max_iter=1, random_state=0)
    topics.fit(counts, checkpoint=tmp_path / "checkpoint")
    topics.save(tmp_path / "model", [f"word{i}" for i in range(20_000)])
    assert take(tmp_path / "model", multiple=10) == ""
    assert take(newest(tmp_path), read_checkpoint, multiple=10) == ""
