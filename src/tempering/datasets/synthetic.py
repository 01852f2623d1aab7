"""Data with a known answer."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tempering.models.arguments import check_number, check_whole

#: Documents that are drawn together, from a stream of random numbers of their own.
BLOCK_SIZE = 8192


class SyntheticLDA(NamedTuple):
    """A corpus drawn from latent Dirichlet allocation, and what it was drawn from."""

    counts: sparse.csr_array  # [n_documents, n_words]
    topics: NDArray[np.float64]  # [n_topics, n_words]
    proportions: NDArray[np.float64]  # [n_documents, n_topics]


@dataclass(eq=False, repr=False)
class LDAStream:
    """Documents drawn from latent Dirichlet allocation, some at a time, of any number.

    It can be written to disk without ever being in memory:
    ``corpus.write("big.parquet", LDAStream(1_000_000))``. Same seed, same documents.

    Parameters
    ----------
    n_documents, n_topics, n_words : int
        Sizes.
    document_length : float
        Mean length of the documents, in words; lengths are Poisson, and 1 at least.
    alpha, eta : float
        Dirichlet parameters of the proportions of topics in a document, and of the ``topics``.
    seed : int
        Of all draws.

    Examples
    --------
    >>> from tempering.datasets import LDAStream
    >>> stream = LDAStream(n_documents=10_000, n_topics=5, n_words=100)
    >>> [block.shape for block in stream.blocks()]
    [(8192, 100), (1808, 100)]
    """

    n_documents: int = 1000
    n_topics: int = 10
    n_words: int = 1000
    document_length: float = 100.0
    alpha: float = 0.1
    eta: float = 0.05
    seed: int = 0

    dtype = np.dtype(np.int32)
    vocabulary = None
    names = None

    def __post_init__(self) -> None:
        check_whole(n_documents=self.n_documents, n_topics=self.n_topics, n_words=self.n_words)
        check_whole(0, seed=self.seed)
        # Documents of a block are drawn together, word by word.
        for name, most in (("document_length", "1e5"), ("alpha", "1e9"), ("eta", "1e9")):
            expected = f"positive, and at most {most}"
            check_number(getattr(self, name), name, expected, above=0, most=float(most))
        self.shape = (self.n_documents, self.n_words)
        words, rng = np.full(self.n_words, self.eta), np.random.default_rng([self.seed, 0])
        self.topics = rng.dirichlet(words, self.n_topics)

    def blocks(self) -> Iterator[sparse.csr_array]:
        """Some documents at a time, in order."""
        return (counts for counts, _ in self.blocks_with_proportions())

    def blocks_with_proportions(self) -> Iterator[tuple[sparse.csr_array, NDArray[np.float64]]]:
        """Some documents at a time, and the proportions of topics they were drawn from."""
        ends = np.cumsum(self.topics, axis=1)
        ends /= ends[:, -1:]
        for number, start in enumerate(range(0, self.shape[0], BLOCK_SIZE)):
            rng = np.random.default_rng([self.seed, number + 1])
            n = min(BLOCK_SIZE, self.shape[0] - start)
            proportions = rng.dirichlet(np.full(len(self.topics), self.alpha), n)
            lengths = np.maximum(rng.poisson(self.document_length, n), 1)
            of_topics = rng.multinomial(lengths, proportions)
            documents = [np.repeat(np.arange(n), of_topic) for of_topic in of_topics.T]
            words = [
                np.searchsorted(topic_ends, rng.random(rows.size), side="right")
                for topic_ends, rows in zip(ends, documents)
            ]
            places = np.concatenate(documents), np.concatenate(words)
            ones = np.ones(places[0].size, self.dtype)
            counts = sparse.coo_array((ones, places), (n, self.shape[1])).tocsr()
            yield counts, proportions


def make_lda(
    n_documents: int = 1000,
    n_topics: int = 10,
    n_words: int = 1000,
    document_length: float = 100.0,
    alpha: float = 0.1,
    eta: float = 0.05,
    seed: int = 0,
) -> SyntheticLDA:
    """Draw a corpus from latent Dirichlet allocation.

    Parameters
    ----------
    n_documents, n_topics, n_words, document_length, alpha, eta, seed
        As in :class:`LDAStream`, which draws the same documents.

    Examples
    --------
    >>> from tempering.datasets import make_lda
    >>> corpus = make_lda(n_documents=50, n_topics=3, n_words=20, seed=1)
    >>> corpus.counts.shape, corpus.topics.shape, corpus.proportions.shape
    ((50, 20), (3, 20), (50, 3))
    """
    stream = LDAStream(n_documents, n_topics, n_words, document_length, alpha, eta, seed)
    blocks, proportions = zip(*stream.blocks_with_proportions())
    counts = sparse.csr_array(sparse.vstack(blocks, format="csr"))
    return SyntheticLDA(counts, stream.topics, np.concatenate(proportions))


SHAPES = """
1111 1000 1000 0000 0001 0000 0010 0000
0000 1000 0100 0110 0010 0000 0111 1000
0000 1000 0010 0110 0100 0011 0010 1100
0000 1000 0001 0000 1000 0011 0000 1110
"""


class ToyImages(NamedTuple):
    """Images with known features."""

    X: NDArray[np.float64]  # [n_images, 16]
    features: NDArray[np.float64]  # [8, 16]
    active: NDArray[np.bool_]  # [n_images, 8]


def make_toy_images(
    n_images: int = 10_000,
    noise_variance: float = 0.1,
    activation_probability: float = 0.3,
    seed: int = 0,
) -> ToyImages:
    """The toy data of the paper: noisy sums of 8 binary images of 4 × 4.

    Each feature has a weight from U[0.5, 1], and is in an image with the same probability.

    Parameters
    ----------
    n_images : int
        How many (N).
    noise_variance : float
        Of the Gaussian noise on each pixel (σ²).
    activation_probability : float
        That a feature is in an image (π).
    seed : int
        Same seed, same images.

    Examples
    --------
    >>> from tempering.datasets import make_toy_images
    >>> images = make_toy_images(n_images=100, seed=1)
    >>> images.X.shape, images.features.shape
    ((100, 16), (8, 16))
    """
    check_whole(n_images=n_images)
    check_whole(0, seed=seed)
    check_number(noise_variance, "noise_variance", "from 0 to 1e9", least=0, most=1e9)
    part = "from 0 to 1"
    check_number(activation_probability, "activation_probability", part, least=0, most=1)
    rng = np.random.default_rng(seed)
    rows = [line.split() for line in SHAPES.split("\n") if line]
    shapes = np.array([[int(bit) for part in image for bit in part] for image in zip(*rows)])
    features = shapes * rng.uniform(0.5, 1.0, size=(8, 1))
    active = rng.random((n_images, 8)) < activation_probability
    noise = np.sqrt(noise_variance) * rng.standard_normal((n_images, 16))
    return ToyImages(active @ features + noise, features, active)
