"""The dump of arXiv's metadata: titles and abstracts."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from tempering.corpus import Document
from tempering.corpus.text_files import filled_lines, json_object, text_field


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
