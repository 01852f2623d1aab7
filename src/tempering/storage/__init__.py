"""Files and directories that appear whole or not at all; trees of arrays on disk."""
