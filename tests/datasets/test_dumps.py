"""Dumps of arXiv and Wikipedia, and faces, read from files made here."""

import bz2
import gzip
import json
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tempering.corpus import CorpusError, Document, from_texts
from tempering.datasets import dumps as dumps_module
from tempering.datasets import load_yale_faces, read_arxiv, read_wikipedia
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


def pgm(image, comment=b""):
    height, width = image.shape
    return b"P5\n%s%d %d\n255\n" % (comment, width, height) + image.tobytes()


@pytest.fixture
def faces(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, size=(4, 6, 4), dtype=np.uint8)
    names = [
        "yaleB02/yaleB02_P00A+000E+00.pgm",
        "yaleB01/yaleB01_P00A-005E+10.pgm",
        "yaleB01/yaleB01_P00A+120E-20.pgm.bad",
        "yaleB01/yaleB01_P00A-005E-10.pgm",
    ]
    folder = tmp_path / "CroppedYale"
    for name, image in zip(names, images):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(pgm(image, b"# a comment 3 4\n"))
    (folder / "yaleB01/yaleB01_P00_Ambient.pgm").write_bytes(pgm(np.zeros((9, 9), np.uint8)))
    (folder / "yaleB01/yaleB01_P00.info").write_text("not an image")
    return folder, images


def test_faces(faces, tmp_path):
    folder, images = faces
    with zipfile.ZipFile(tmp_path / "faces.zip", "w") as archive:
        for path in folder.rglob("*"):
            archive.write(path, path.relative_to(tmp_path))
    for place in (folder, tmp_path / "faces.zip"):
        found = load_yale_faces(place)
        assert_array_equal(found.images, images[[3, 1, 2, 0]])
        assert_array_equal(found.subject, [1, 1, 1, 2])
        assert_array_equal(found.azimuth, [-5, -5, 120, 0])
        assert_array_equal(found.elevation, [-10, 10, -20, 0])
        assert_array_equal(found.bad, [False, False, True, False])
    reduced = load_yale_faces(folder, reduce=2).images
    expected = images[3].astype(float).reshape(3, 2, 2, 2).mean(axis=(1, 3))
    assert_array_equal(reduced[0], np.rint(expected))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the header of a PGM image should be P5"),
        (b"P2\n4 6\n255\n" + bytes(24), "header of a PGM image should be P5"),
        (b"P5\n4 6\n65535\n" + bytes(48), "it should have pixels, of 8 bits"),
        (b"P5\n4 6\n255\n" + bytes(23), "4 x 6 pixels are promised, 23 bytes are there"),
        (b"P5\n999999 999999\n255\n" + bytes(23), "999999 x 999999 pixels are promised"),
        (pgm(np.zeros((2, 2), np.uint8)), r"it is \(2, 2\), but the first image is \(6, 4\)"),
    ],
)
def test_a_broken_image_is_named(faces, content, message):
    folder, _ = faces
    (folder / "yaleB02/yaleB02_P00A+000E+00.pgm").write_bytes(content)
    with pytest.raises(CorpusError, match=message) as raised:
        load_yale_faces(folder)
    assert "yaleB02_P00A+000E+00.pgm" in str(raised.value)


def test_no_faces(tmp_path):
    with pytest.raises(CorpusError, match="there is no image named like yaleB01"):
        load_yale_faces(tmp_path)
    (tmp_path / "faces.zip").write_bytes(b"PK nothing")
    with pytest.raises(CorpusError, match="not a zip file"):
        load_yale_faces(tmp_path / "faces.zip")
    with pytest.raises(ValueError, match="reduce must be at least 1; got 0"):
        load_yale_faces(tmp_path, reduce=0)
