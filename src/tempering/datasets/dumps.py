"""Dumps of others: the titles and abstracts of arXiv, the articles of Wikipedia."""

from __future__ import annotations

import bz2
import html
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tempering.corpus import Document
from tempering.corpus.checks import fail
from tempering.corpus.text_files import filled_lines, json_object, text_field

CHUNK_BYTES = 1 << 18
#: Wikipedia itself allows 2 MiB.
LONGEST_PAGE = 1 << 26
MOST_NESTED = 20

COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
REFERENCE = re.compile(r"<ref\b[^<>]*/>|<(ref|math|gallery|code)\b[^<>]*>.*?</\1\s*>", re.DOTALL)
TEMPLATE = re.compile(r"\{\{[^{}]*\}\}")
TABLE = re.compile(r"\{\|[^{}]*\|\}")
FILE = re.compile(r"\[\[(?:File|Image|Category)[ ]*:[^\[\]]*\]\]", re.IGNORECASE)
LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
OUTER_LINK = re.compile(r"\[(?:https?|ftp):[^\s\]]*[ ]?([^\]]*)\]")
TAG = re.compile(r"<[^<>]*>")
QUOTES = re.compile(r"'{2,}")


def read_arxiv(
    path: str | os.PathLike[str], categories: Collection[str] | None = None
) -> Iterator[Document]:
    """The papers of a dump of arXiv's metadata, one after another.

    Count their words with ``corpus.from_texts(read_arxiv(path), out="arxiv.parquet")``.

    Parameters
    ----------
    path : path
        The file of JSON lines that Kaggle has as "arXiv Dataset", plain or gzipped.
    categories : collection of str, optional
        Keep papers in one of these, such as "stat.ML"; or in an archive, such as "stat".

    Yields
    ------
    Document
        Named by the identifier; title and abstract.

    Examples
    --------
    >>> import json
    >>> import tempfile
    >>> from pathlib import Path
    >>> from tempering.datasets import read_arxiv
    >>> paper = {"id": "1411.1810", "title": "Variational Tempering", "abstract": " VI ...",
    ...          "categories": "stat.ML cs.LG"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "arxiv.json"
    ...     _ = path.write_text(json.dumps(paper))
    ...     list(read_arxiv(path, categories=["stat"]))
    [Document(name='1411.1810', text='Variational Tempering\\nVI ...')]
    """
    path = Path(path)
    for number, line in filled_lines(path):
        place, row = f"line {number}", json_object(path, number, line)
        title, abstract, name = (
            text_field(row, column, path, place) for column in ("title", "abstract", "id")
        )
        if categories is not None:
            given = text_field(row, "categories", path, place).split()
            archives = [category.split(".")[0] for category in given]
            if not set(categories).intersection([*given, *archives]):
                continue
        yield Document(name, f"{' '.join(title.split())}\n{abstract.strip()}")


def read_wikipedia(path: str | os.PathLike[str]) -> Iterator[Document]:
    """The articles of a dump, one after another, without markup.

    Redirects and pages that are no articles are left out. Count the words with
    ``corpus.from_texts(read_wikipedia(path), out="wikipedia.parquet")``.

    Parameters
    ----------
    path : path
        A file such as ``enwiki-latest-pages-articles.xml.bz2``, or the same unpacked.

    Yields
    ------
    Document
        Named by the title.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from tempering.datasets import read_wikipedia
    >>> dump = "<mediawiki><page><title>Heat</title><ns>0</ns><revision><text>"
    >>> dump += "It is '''[[energy]]'''.</text></revision></page></mediawiki>"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "dump.xml"
    ...     _ = path.write_text(dump)
    ...     list(read_wikipedia(path))
    [Document(name='Heat', text='It is energy.')]
    """
    path = Path(path)
    for page in _pages(path):
        fields = {_bare(part.tag): part for part in page.iter()}
        if "redirect" in fields or _text(fields.get("ns")) not in ("", "0"):
            continue
        yield Document(_text(fields.get("title")), plain_text(_text(fields.get("text"))))


def _pages(path: Path) -> Iterator[ElementTree.Element]:
    """The pages, of which one is in memory at a time."""
    with open(path, "rb") as file:
        is_packed = file.read(3) == b"BZh"
    parser = ElementTree.XMLPullParser(["start", "end"])
    root, n_pages, since_page = None, 0, 0
    with bz2.open(path) if is_packed else open(path, "rb") as file:
        while True:
            try:
                chunk = file.read(CHUNK_BYTES)
                if chunk:
                    parser.feed(chunk)
                else:
                    parser.close()
                events: list[Any] = list(parser.read_events())
            except ElementTree.ParseError as error:
                line, _ = error.position
                fail(path, f"line {line}", f"it is no XML, or cut short ({error}).")
            except (OSError, EOFError, ValueError) as error:
                fail(path, f"after {n_pages} pages", f"the dump is damaged ({error}).")
            since_page += len(chunk)
            for event, element in events:
                if root is None:
                    root = element
                elif event == "end" and _bare(element.tag) == "page":
                    yield element
                    # What was read would stay in memory as part of the tree.
                    root.clear()
                    n_pages, since_page = n_pages + 1, 0
            if since_page > LONGEST_PAGE:
                fail(path, f"after {n_pages} pages", f"one is longer than {LONGEST_PAGE} bytes.")
            if not chunk:
                return


def _bare(tag: str) -> str:
    """A tag without its namespace."""
    return tag.rpartition("}")[2]


def _text(element: ElementTree.Element | None) -> str:
    return "" if element is None or element.text is None else element.text


def plain_text(markup: str) -> str:
    """Wiki markup as text, well enough to count words."""
    text = REFERENCE.sub(" ", COMMENT.sub(" ", markup))
    # What is nested goes from the inside out.
    for patterns in (((TEMPLATE, " "),), ((TABLE, " "),), ((FILE, " "), (LINK, r"\1"))):
        for _ in range(MOST_NESTED):
            before = text
            for pattern, instead in patterns:
                text = pattern.sub(instead, text)
            if text == before:
                break
    text = TAG.sub(" ", OUTER_LINK.sub(r"\1", text))
    return html.unescape(QUOTES.sub("", text)).strip()
