"""Factor models: data that are products of what rows and columns have of each factor."""
