"""The one place that imports matplotlib, and says what to install where it is missing."""

from __future__ import annotations

from importlib.util import find_spec
from io import BytesIO
from typing import Any


class DrawingUnavailable(ImportError):
    """matplotlib is not installed."""


def require_drawing() -> None:
    """Raise, before any work, if nothing can be drawn here."""
    if find_spec("matplotlib") is None:
        raise DrawingUnavailable(
            "Drawing needs matplotlib. Install it with: pip install 'tempering[plot]'"
        )


def new_figure(**options: Any) -> Any:
    """An empty matplotlib figure that belongs to no window, so that it works anywhere."""
    require_drawing()
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that a notebook shows, though no window manager knows of it."""

        def _repr_png_(self) -> bytes:
            buffer = BytesIO()
            self.savefig(buffer, format="png")
            return buffer.getvalue()

    return Picture(layout="constrained", **options)
