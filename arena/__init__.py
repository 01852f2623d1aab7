"""The arena: topic programs on the same documents, scored by the same functions, losses and all."""
