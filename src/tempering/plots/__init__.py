"""Pictures with matplotlib, which the extra ``tempering[plot]`` installs."""
