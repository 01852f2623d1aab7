"""Each figure and claim of the paper as a runnable experiment."""
