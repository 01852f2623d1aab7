"""Data sets: real text that is on every machine, known corpora, and data with a known answer."""

from tempering.datasets.corpora import fetch_uci, load_docstrings
from tempering.datasets.synthetic import LDAStream, ToyImages, make_lda, make_toy_images
from tempering.storage import cache_directory

__all__ = [
    "LDAStream",
    "ToyImages",
    "cache_directory",
    "fetch_uci",
    "load_docstrings",
    "make_lda",
    "make_toy_images",
]
