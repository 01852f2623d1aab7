"""Data sets: real text that is on every machine, and data with a known answer."""

from tempering.datasets.docstrings import load_docstrings
from tempering.datasets.synthetic import LDAStream, ToyImages, make_lda, make_toy_images
from tempering.storage import cache_directory

__all__ = [
    "LDAStream",
    "ToyImages",
    "cache_directory",
    "load_docstrings",
    "make_lda",
    "make_toy_images",
]
