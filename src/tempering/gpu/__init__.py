"""Fits on a GPU, or whatever device JAX finds: ``backend="gpu"`` of the estimators."""
