"""Words of texts counted, some texts at a time, here or in other processes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from tempering.corpus.checks import fail

#: Texts that are counted at a time.
TEXTS_OF_A_BLOCK = 1024
#: Blocks that are counted here before other processes start, which takes them some seconds.
BLOCKS_COUNTED_HERE = 16
#: Blocks that a process is given before all are waited for.
BLOCKS_OF_A_PROCESS = 2
#: Characters of the texts that go to another process at a time: a text may be a whole book.
MOST_CHARACTERS = 8_000_000


class NamedText(NamedTuple):
    """A text, or a list of words; its name, and where it stands, for errors."""

    place: str
    name: str | None
    text: Any


class Block(NamedTuple):
    """Some documents: their names, and counts of words, which are numbers, one after another."""

    names: list[str | None]
    counts: NDArray[Any]
    words: NDArray[np.int32]
    ends: NDArray[np.int64]


class CountedTexts(NamedTuple):
    """A block whose numbers are places in a list of words, and whether a text was such a list."""

    block: Block
    words: list[str]
    had_words: bool


class WordCounter:
    """Counts the words that an analyzer finds in texts; ``binary`` counts each once a text."""

    def __init__(self, analyze: Callable[[Any], Iterable[str]], binary: bool):
        self.analyze = analyze
        self.binary = binary

    def __call__(self, texts: Iterable[NamedText]) -> CountedTexts:
        """Count some texts."""
        places: dict[str, int] = defaultdict(count().__next__)
        names, words, counts, ends, had_words = [], [], [], [0], False
        for place, name, text in texts:
            if isinstance(text, (str, bytes)):
                try:
                    bag = Counter(self.analyze(text))
                except UnicodeDecodeError as error:
                    fail("texts", place, f"it is not {error.encoding} ({error.reason}).")
            else:
                bag, had_words = Counter(text), True
            names.append(name)
            words.extend(map(places.__getitem__, bag))
            # Before the words are ranked by how often they count.
            counts.extend([1] * len(bag) if self.binary else bag.values())
            ends.append(len(words))
        arrays = np.array(counts, np.int32), np.array(words, np.int32), np.array(ends, np.int64)
        return CountedTexts(Block(names, *arrays), list(places), had_words)

    def count(self, texts: Iterable[NamedText], n_jobs: int | None) -> Iterator[CountedTexts]:
        """Count all texts in order; many of them in ``n_jobs`` processes, -1 for one a core."""
        texts = iter(texts)
        n_processes = effective_n_jobs(n_jobs)
        for _ in count() if n_processes == 1 else range(BLOCKS_COUNTED_HERE):
            counted = self(islice(texts, TEXTS_OF_A_BLOCK))
            if not counted.block.names:
                return
            yield counted
        chunks = _chunks(texts)
        pool = Parallel(n_processes, return_as="generator")
        group = list(islice(chunks, BLOCKS_OF_A_PROCESS * n_processes))
        while group:
            results = pool(delayed(self)(chunk) for chunk in group)
            # Read while they count.
            group = list(islice(chunks, BLOCKS_OF_A_PROCESS * n_processes))
            yield from results


def _chunks(texts: Iterator[NamedText]) -> Iterator[list[NamedText]]:
    """What goes to another process at a time."""
    chunk, n_characters = [], 0
    for each in texts:
        chunk.append(each)
        n_characters += len(each.text)
        if len(chunk) == TEXTS_OF_A_BLOCK or n_characters > MOST_CHARACTERS:
            yield chunk
            chunk, n_characters = [], 0
    if chunk:
        yield chunk
