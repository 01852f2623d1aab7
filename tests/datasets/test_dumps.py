"""Dumps of arXiv and Wikipedia, and faces, read from files made here."""

import bz2
import gzip
import json

import pytest

from tempering.corpus import CorpusError, Document, from_texts
from tempering.datasets import dumps as dumps_module
from tempering.datasets import read_arxiv, read_wikipedia
from tempering.datasets.dumps import plain_text

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


def page(title, text, ns=0, redirect=False):
    mark = '<redirect title="x" />' if redirect else ""
    return (
        f"<page><title>{title}</title><ns>{ns}</ns>{mark}<revision><id>1</id>"
        f'<text xml:space="preserve">{text}</text></revision></page>'
    )


def dump(pages):
    start = '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/"><siteinfo></siteinfo>'
    return f"{start}{''.join(pages)}</mediawiki>".encode()


PAGES = [
    page("Alpha", "'''Alpha''' is a [[letter|character]]."),
    page("Talk:Alpha", "Chatter", ns=1),
    page("Alfa", "#REDIRECT [[Alpha]]", redirect=True),
    page("Ünï", "Two &lt;b&gt;words&lt;/b&gt; &amp; more"),
    page("Empty", ""),
]
ARTICLES = [
    Document("Alpha", "Alpha is a character."),
    Document("Ünï", "Two  words  & more"),
    Document("Empty", ""),
]


@pytest.mark.parametrize("chunk_bytes", [1, 50, 1 << 18])
@pytest.mark.parametrize("packed", [False, True])
def test_wikipedia(tmp_path, monkeypatch, chunk_bytes, packed):
    monkeypatch.setattr(dumps_module, "CHUNK_BYTES", chunk_bytes)
    path = tmp_path / "dump.xml.bz2"
    # Real dumps are many streams one after another.
    content = dump(PAGES)
    packed_content = bz2.compress(content[:300]) + bz2.compress(content[300:])
    path.write_bytes(packed_content if packed else content)
    assert list(read_wikipedia(path)) == ARTICLES


def test_a_broken_dump_is_named(tmp_path, monkeypatch):
    path = tmp_path / "dump.xml.bz2"
    path.write_bytes(bz2.compress(dump(PAGES))[:-20])
    with pytest.raises(CorpusError, match=r"dump\.xml\.bz2"):
        list(read_wikipedia(path))
    path.write_bytes(dump(PAGES)[:-20])
    with pytest.raises(CorpusError, match="line 1: it is no XML, or cut short"):
        list(read_wikipedia(path))
    monkeypatch.setattr(dumps_module, "LONGEST_PAGE", 1000)
    monkeypatch.setattr(dumps_module, "CHUNK_BYTES", 100)
    path.write_bytes(dump([page("Long", "word " * 1000)]))
    with pytest.raises(CorpusError, match="after 0 pages: one is longer than 1000 bytes"):
        list(read_wikipedia(path))


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("{{Infobox|a={{b|{{c}}}}}}Text", "Text"),
        ("{| class=x\n| cell\n|}after", "after"),
        ("[[File:x.png|thumb|A [[cat]]]] dog", "dog"),
        ("[[cat]]s and [[dog|hounds]]", "cats and hounds"),
        ("see [http://example.org a site]", "see a site"),
        ("fact<ref name=a>cite {{web}}</ref>, more<ref name=b />", "fact , more"),
        ("a<!-- hidden\nlines -->b", "a b"),
        ("''it'' and '''bold'''", "it and bold"),
        ("{{ never closed", "{{ never closed"),
    ],
)
def test_markup_is_taken_away(markup, text):
    assert plain_text(markup) == text
