"""A large corpus of known topics, drawn on the GPU."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tempering.datasets import LDAStream

GENERATED_WORDS, GENERATED_TOPICS, GENERATED_LENGTH = 20_000, 200, 100.0
DOCUMENTS_AT_ONCE = 65_536


def generate(n_documents: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Documents drawn from LDA on the device, and their topics, those of :class:`LDAStream`."""
    import jax
    import jax.numpy as jnp

    stream = LDAStream(1, GENERATED_TOPICS, GENERATED_WORDS, eta=0.05)
    ends = np.cumsum(stream.topics, axis=1)
    ends = jnp.asarray(ends / ends[:, -1:], jnp.float32)
    places = int(GENERATED_LENGTH + 6 * np.sqrt(GENERATED_LENGTH))

    def search(rows, row, position):
        """The first place in a row of rising numbers that is above the position."""
        low = jnp.zeros(position.shape, jnp.int32)
        high = jnp.full(position.shape, rows.shape[1] - 1, jnp.int32)
        for _ in range(int(rows.shape[1]).bit_length()):
            middle = (low + high) // 2
            above = rows[row, middle] > position
            low, high = jnp.where(above, low, middle + 1), jnp.where(above, middle, high)
        return jnp.minimum(low, rows.shape[1] - 1)

    @jax.jit
    def draw(key):
        keys = jax.random.split(key, 4)
        shape = (DOCUMENTS_AT_ONCE, places)
        gammas = jax.random.gamma(keys[0], 0.1, (shape[0], GENERATED_TOPICS)) + 1e-20
        theta = jnp.cumsum(gammas / gammas.sum(axis=1, keepdims=True), axis=1)
        own = jnp.broadcast_to(jnp.arange(shape[0])[:, None], shape)
        topic = search(theta, own, jax.random.uniform(keys[1], shape) * theta[:, -1:])
        word = search(ends, topic, jax.random.uniform(keys[2], shape))
        length = jnp.clip(jax.random.poisson(keys[3], GENERATED_LENGTH, shape[:1]), 1, places)
        word = jnp.where(jnp.arange(places) < length[:, None], word, GENERATED_WORDS)
        word = jnp.sort(word, axis=1)
        first = jnp.pad(word[:, 1:] != word[:, :-1], ((0, 0), (1, 0)), constant_values=True)
        return word.astype(jnp.int32), first & (word < GENERATED_WORDS)

    pieces = []
    for number in range(-(-n_documents // DOCUMENTS_AT_ONCE)):
        word, first = map(np.asarray, draw(jax.random.key(number)))
        flat = first.ravel()
        begins = np.flatnonzero(flat)
        # A word's count is the way to the next first place, or to the end of the document's words.
        ends_of = np.append(begins[1:], flat.size)
        own_row = begins // places
        last = own_row * places + (word < GENERATED_WORDS).sum(axis=1)[own_row]
        counts = np.minimum(ends_of, last) - begins
        indptr = np.append(0, np.cumsum(first.sum(axis=1)))
        shape = (word.shape[0], GENERATED_WORDS)
        pieces.append(sparse.csr_matrix((counts.astype(np.uint8), word[first], indptr), shape))
    return sparse.csr_matrix(sparse.vstack(pieces, format="csr")[:n_documents]), stream.topics
