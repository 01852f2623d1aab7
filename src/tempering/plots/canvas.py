"""The one place that imports matplotlib, and says what to install where it is missing."""

from __future__ import annotations

from typing import Any


def new_figure(**options: Any) -> Any:
    """An empty matplotlib figure that belongs to no window, so that it works anywhere."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "Drawing needs matplotlib. Install it with: pip install 'tempering[plot]'"
        ) from error
    return Figure(layout="constrained", **options)
