"""Dumps of arXiv and Wikipedia, and faces, read from files made here."""

import gzip
import json

import pytest

from tempering.corpus import CorpusError, Document, from_texts
from tempering.datasets import read_arxiv

PAPERS = [
    {
        "id": "0704.0001",
        "title": "On\n  x",
        "abstract": "  We show.\n",
        "categories": "stat.ML cs.LG",
    },
    {"id": "0704.0002", "title": "On y", "abstract": "We ask.", "categories": "hep-th"},
]


@pytest.mark.parametrize("packed", [False, True])
def test_arxiv(tmp_path, packed):
    content = "".join(json.dumps(paper) + "\n" for paper in PAPERS).encode()
    path = tmp_path / "arxiv.json"
    path.write_bytes(gzip.compress(content) if packed else content)
    first, second = Document("0704.0001", "On x\nWe show."), Document("0704.0002", "On y\nWe ask.")
    assert list(read_arxiv(path)) == [first, second]
    assert list(read_arxiv(path, ["stat.ML"])) == [first]
    assert list(read_arxiv(path, {"cs", "math"})) == [first]
    assert list(read_arxiv(path, ["hep-th"])) == [second]
    corpus = from_texts(read_arxiv(path))
    assert corpus.names == ["0704.0001", "0704.0002"]


def test_a_broken_line_of_arxiv_is_named(tmp_path):
    path = tmp_path / "arxiv.json"
    path.write_text(json.dumps(PAPERS[0]) + "\n" + json.dumps({"id": "1", "title": "x"}) + "\n")
    with pytest.raises(CorpusError, match=r"arxiv\.json, line 2: there is no column 'abstract'"):
        list(read_arxiv(path))
