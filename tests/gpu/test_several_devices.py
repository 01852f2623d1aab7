"""A fit on several devices has the bits of one; run as a program, this fits on one and on eight."""

import hashlib
import os
import subprocess
import sys

import pytest
from scipy import sparse

from tempering import Annealing, schedules
from tempering.datasets import make_lda
from tempering.gpu.device_lda import fit_on_device
from tempering.gpu.jax_device import device_mesh
from tempering.models.lda.model import LatentDirichlet

pytest.importorskip("jax")

#: Eight devices; and code that need not be fast, as to make it is most of the work.
FLAGS = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"


@pytest.mark.parametrize("kernel", ["plain", pytest.param("interpreted", marks=pytest.mark.slow)])
def test_eight_devices_give_the_bits_of_one(kernel):
    run = subprocess.run(
        [sys.executable, __file__, kernel],
        env={
            **os.environ,
            "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {FLAGS}",
            "JAX_PLATFORMS": "cpu",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    (n_one, one), (n_eight, eight) = (line.split() for line in run.stdout.splitlines())
    assert (n_one, n_eight) == ("1", "8")
    assert one == eight


def bits_of_a_fit(kernel):
    # Neither documents nor words are a multiple of eight; a warm step, then sampled ones.
    counts = sparse.csr_matrix(make_lda(27, 3, 61, 20.0, seed=1).counts)
    model = LatentDirichlet(3, 61, 0.1, 0.1, update="sampled")
    policy = Annealing(schedules.linear_inverse(2.0), fraction=0.5)
    options = {"batch_size": 27, "max_passes": 4, "seed": 3, "kernel": kernel, "resident": False}
    result = fit_on_device(model, counts, temperature=policy, **options)
    return hashlib.sha256(result.posterior.parameters().tobytes()).hexdigest()


if __name__ == "__main__":
    import jax

    with jax.default_device(jax.devices()[0]):
        print(1 if device_mesh() is None else "several", bits_of_a_fit(sys.argv[1]))
    print(device_mesh().size, bits_of_a_fit(sys.argv[1]))
