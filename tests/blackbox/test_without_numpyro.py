"""Without NumPyro the package is as it was, and says what to install."""

import subprocess
import sys

CODE = """
import sys
sys.modules["numpyro"] = None  # as if it were not installed
try:
    from tempering.blackbox import TemperedSVI
except ImportError as error:
    print(error)
"""


def test_the_error_names_the_extra():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert "pip install 'tempering[numpyro]'" in done.stdout
    assert "needs JAX, NumPyro and optax" in done.stdout
