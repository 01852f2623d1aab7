"""Topic models on a GPU (JAX)."""
