"""Downloads: kept and checked; from a server on this machine."""

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from tempering.corpus import CorpusError, read
from tempering.datasets import corpora as uci_module
from tempering.datasets import fetch_uci
from tempering.datasets.corpora import fetched


class Server(ThreadingHTTPServer):
    """Files in memory; a download may be made to break off."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {}
        self.break_after = []
        self.requests = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server = self.server
        server.requests.append(self.path)
        name = self.path.lstrip("/")
        if name not in server.files:
            self.send_error(404)
            return
        content = server.files[name]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if server.break_after:
            content = content[: server.break_after.pop(0)]
            self.close_connection = True
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


CONTENT = np.random.default_rng(0).bytes(1_000_000)


def test_a_file_is_fetched_once(server, tmp_path):
    server.files["a.bin"] = CONTENT
    for _ in range(3):
        path = fetched(f"{server.url}/a.bin", tmp_path)
        assert path.read_bytes() == CONTENT
    assert len(server.requests) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.bin", "a.bin.sha256"]


def test_a_download_that_breaks_off_leaves_nothing(server, tmp_path):
    server.files["a.bin"] = CONTENT
    server.break_after = [300_000]
    with pytest.raises(OSError, match=r"a\.bin could not be fetched"):
        fetched(f"{server.url}/a.bin", tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert fetched(f"{server.url}/a.bin", tmp_path).read_bytes() == CONTENT


def test_the_hash_of_the_first_download_is_kept(server, tmp_path):
    server.files["a.bin"] = CONTENT
    path = fetched(f"{server.url}/a.bin", tmp_path)
    path.write_bytes(b"damaged")
    assert fetched(f"{server.url}/a.bin", tmp_path).read_bytes() == CONTENT
    path.unlink()
    server.files["a.bin"] = CONTENT[::-1]
    with pytest.raises(ValueError, match="hash"):
        fetched(f"{server.url}/a.bin", tmp_path)


def test_a_file_that_is_not_there(server, tmp_path):
    with pytest.raises(OSError, match=r"nothing\.bin could not be fetched: .*404"):
        fetched(f"{server.url}/nothing.bin", tmp_path)
    assert len(server.requests) == 1
    assert list(tmp_path.iterdir()) == []


def test_uci(server, tmp_path, monkeypatch):
    server.files["docword.kos.txt.gz"] = gzip.compress(b"2\n3\n2\n1 1 4\n2 3 5\n")
    server.files["vocab.kos.txt"] = b"one\ntwo\nthree\n"
    with pytest.raises(CorpusError, match="has 2 documents and 3 words instead of 3430 and 6906"):
        fetch_uci("kos", tmp_path, server.url)
    monkeypatch.setitem(uci_module.SHAPES, "kos", (2, 3))
    corpus = read(fetch_uci("kos", tmp_path, server.url))
    assert corpus.counts.toarray().tolist() == [[4, 0, 0], [0, 0, 5]]
    assert corpus.vocabulary == ["one", "two", "three"]
    assert len(server.requests) == 2
    with pytest.raises(ValueError, match="name must be one of kos, nips, enron, nytimes, pubmed"):
        fetch_uci("kitten", tmp_path, server.url)
