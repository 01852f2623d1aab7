"""Corpora: counts of words in documents, read and written in many formats, or built from text."""

from tempering.corpus.corpus import Corpus, Stored
from tempering.corpus.counting import WordCounting, model_vectorizer
from tempering.corpus.files import CorpusError
from tempering.corpus.formats import FORMATS, open_corpus, open_source, read, write
from tempering.corpus.text import from_texts
from tempering.corpus.text_files import Document, read_texts

__all__ = [
    "FORMATS",
    "Corpus",
    "CorpusError",
    "Document",
    "Stored",
    "WordCounting",
    "from_texts",
    "model_vectorizer",
    "open_corpus",
    "open_source",
    "read",
    "read_texts",
    "write",
]
