"""A small corpus with known topics on disk, and a model of it made by the command."""

import csv
import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

from tempering.cli.app import app
from tempering.corpus import Corpus, write

N_TOPICS, N_WORDS, N_DOCUMENTS = 4, 80, 400


def make_corpus(n_documents=N_DOCUMENTS):
    """Documents of mostly one topic each, which has 20 words of its own."""
    rng = np.random.default_rng(0)
    topics = np.kron(np.eye(N_TOPICS), np.full(N_WORDS // N_TOPICS, 0.05))
    theta = rng.dirichlet(np.full(N_TOPICS, 0.1), size=n_documents)
    counts = [rng.multinomial(40, p) for p in theta @ topics]
    words = [f"{'abcd'[v // 20]}{v:02d}" for v in range(N_WORDS)]
    return Corpus(sparse.csr_array(np.array(counts)), words, [f"d{i}" for i in range(n_documents)])


@pytest.fixture(scope="session")
def command():
    """Run the command; check the exit code; its output, as JSON where that was asked for."""

    def run(*arguments, code=0):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == code, result.output
        if "--json" in arguments and code == 0:
            return json.loads(result.stdout)
        return result

    return run


@pytest.fixture(scope="session")
def files(tmp_path_factory, command):
    """The corpus in memory (`corpus`) and on disk (`counts`), and a model of it (`model`)."""
    folder = tmp_path_factory.mktemp("files")
    corpus = make_corpus()
    counts, model = folder / "small.npz", folder / "model"
    write(counts, corpus)
    fitted = command("fit", counts, "--topics", N_TOPICS, "--out", model, "--json")
    return SimpleNamespace(corpus=corpus, counts=counts, model=model, fitted=fitted)


@pytest.fixture(scope="session")
def written_proportions():
    """What reads a table of `tempering transform`: ids, and proportions."""

    def read(path):
        _, *rows = csv.reader(path.open())
        return [row[0] for row in rows], np.array([row[1:] for row in rows], float)

    return read
