"""What goes wrong with a corpus."""

from __future__ import annotations


class CorpusError(ValueError):
    """A corpus that cannot be read or written. The message names the file and the place in it.

    Examples
    --------
    >>> from tempering.corpus import Corpus, CorpusError
    >>> try:
    ...     Corpus([[1, 2]])
    ... except CorpusError as error:
    ...     print(error)
    counts must be a sparse matrix of real numbers; got list of None.
    """
