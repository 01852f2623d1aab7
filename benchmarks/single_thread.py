"""Import this before numpy: one thread for BLAS and OpenMP, in this process and its children."""

import os

for _library in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMEXPR"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"
