"""Words of texts counted, some texts at a time, here or in other processes."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from tempering.corpus.checks import fail

#: Texts that are counted at a time, and characters: a text may be a whole book.
TEXTS_OF_A_BLOCK, MOST_CHARACTERS = 4096, 16_000_000
#: Blocks that are counted here before other processes start, which takes them some seconds.
BLOCKS_COUNTED_HERE = 4
#: Blocks that a process is given before all are waited for.
BLOCKS_OF_A_PROCESS = 2


class NamedText(NamedTuple):
    """A text, or a list of words; its name, and where it stands, for errors."""

    place: str
    name: str | None
    text: Any


class DocumentBlock(NamedTuple):
    """Some documents: their names, and counts of words, which are numbers, one after another."""

    names: list[str | None]
    counts: NDArray[Any]
    words: NDArray[np.int32]
    ends: NDArray[np.int64]


class CountedTexts(NamedTuple):
    """A block whose numbers are places in a list of words, and whether a text was such a list."""

    block: DocumentBlock
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
        return CountedTexts(DocumentBlock(names, *arrays), list(places), had_words)

    def count(self, texts: Iterable[NamedText], n_jobs: int | None) -> Iterator[CountedTexts]:
        """Count all texts in order; many of them in ``n_jobs`` processes, -1 for one a core."""
        texts = iter(texts)
        n_processes = effective_n_jobs(n_jobs)
        for _ in count() if n_processes == 1 else range(BLOCKS_COUNTED_HERE):
            counted = self(_block(texts))
            if not counted.block.names:
                return
            yield counted
        pool = Parallel(n_processes, return_as="generator")
        chunks = iter(lambda: list(_block(texts)), [])
        group = list(islice(chunks, BLOCKS_OF_A_PROCESS * n_processes))
        while group:
            results = pool(delayed(self)(chunk) for chunk in group)
            # Read while they count.
            group = list(islice(chunks, BLOCKS_OF_A_PROCESS * n_processes))
            yield from results


def _block(texts: Iterator[NamedText]) -> Iterator[NamedText]:
    """The next texts, as many as are counted at a time."""
    n_characters = 0
    for each in islice(texts, TEXTS_OF_A_BLOCK):
        yield each
        n_characters += len(each.text)
        if n_characters > MOST_CHARACTERS:
            return
