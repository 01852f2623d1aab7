"""The same bits whether the kernels were compiled in this process or loaded from disk."""

import os
import subprocess
import sys

FIT = """
import hashlib
from tempering import LatentDirichletAllocation
from tempering.datasets import make_lda

X = make_lda(300, 8, n_words=500, document_length=60, seed=0).counts
model = LatentDirichletAllocation(10, max_iter=2, n_jobs=1, random_state=0).fit(X)
print(hashlib.sha256(model.components_.tobytes()).hexdigest())
"""


def test_compiled_and_loaded_kernels_give_the_same_bits(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    hashes = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", FIT],
            env=environment, check=True, capture_output=True, text=True,
        ).stdout
        for _ in range(2)
    ]  # fmt: skip
    assert list(tmp_path.rglob("*.nbi"))
    assert hashes[0] == hashes[1]
