"""Topics over time and by group, of columns as a table has them."""

from collections import Counter
from typing import Any

import numpy as np
import typer

from tempering.cli.errors import say
from tempering.cli.options import MOST_GROUPS
from tempering.workbench import TopicShares, topics_by_group, topics_over_time
from tempering.workbench.shares import sizes_of
from tempering.workbench.time_bins import as_times

#: Draws from the posterior of the shares: enough for the ends of intervals to be read.
N_DRAWS = 60
OTHERS = "(others)"


def shares_of(
    model: Any, counts: Any, wanted: dict[str, str], columns: list[list[Any]], bins: Any
) -> dict[str, TopicShares]:
    """What a report shows of the columns "times" and "groups"."""
    shares = {}
    for (name, column), values in zip(wanted.items(), columns):
        known = np.array([is_known(value) for value in values], dtype=bool)
        if not known.any():
            raise typer.BadParameter(f"--{name} {column}: no document has a value in this column.")
        if not known.all():
            n = int((~known).sum())
            say(f"warning: --{name} {column}: {n:,} documents have no value, and are left out.")
        told = [value for value in values if is_known(value)]
        # So few, or so many, cannot be the documents of the fit, but may be others of the kind.
        n_words, n_fitted = sizes_of(model, counts[known])
        how: Any = {"n_draws": N_DRAWS, "new_documents": not 0.5 < n_words / n_fitted < 2}
        if name == "times":
            try:
                times = as_times(told)
            except ValueError as error:
                raise typer.BadParameter(f"--times {column}: {error}") from None
            shares["over_time"] = topics_over_time(model, counts[known], times, bins, **how)
        else:
            shares["by_group"] = topics_by_group(model, counts[known], as_groups(told), **how)
    return shares


def is_known(value: Any) -> bool:
    """Whether there is a value."""
    return value is not None and value == value and str(value).strip() != ""


def as_groups(values: list[Any]) -> list[str]:
    """The names of the largest groups; the rest are one."""
    names = [str(value).strip() for value in values]
    sizes = Counter(names)
    if len(sizes) <= MOST_GROUPS:
        return names
    largest = {name for name, _ in sizes.most_common(MOST_GROUPS - 1)}
    say(f"warning: of {len(sizes):,} groups, the {len(largest)} largest are told apart.")
    return [name if name in largest else OTHERS for name in names]
