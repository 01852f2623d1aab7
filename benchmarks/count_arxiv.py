"""Count the words of arXiv's titles and abstracts, of the dump of metadata that Kaggle has.

python benchmarks/count_arxiv.py arxiv-metadata-oai-snapshot.json arxiv.npz
"""

import json
import sys

from tempering.corpus import Document, WordCounting, from_texts, write


def papers(path):
    """The papers of the dump, one after another."""
    with open(path, encoding="utf-8") as file:
        for paper in map(json.loads, file):
            title, abstract = " ".join(paper["title"].split()), paper["abstract"].strip()
            yield Document(paper["id"], f"{title}\n{abstract}")


if __name__ == "__main__":
    dump, out = sys.argv[1:]
    vectorizer = WordCounting().vectorizer(min_df=5, max_df=0.5)
    write(out, from_texts(papers(dump), vectorizer=vectorizer))
