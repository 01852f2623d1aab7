"""The one place that imports matplotlib, and says what to install where it is missing."""

from io import BytesIO
from typing import Any


def new_figure(**options: Any) -> Any:
    """An empty matplotlib figure that belongs to no window, so that it works anywhere."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        problem = "Drawing needs matplotlib. Install it with: pip install 'tempering[plot]'"
        raise ImportError(problem) from None

    class Picture(Figure):
        """A figure that a notebook shows, though no window manager knows of it."""

        def _repr_png_(self) -> bytes:
            buffer = BytesIO()
            self.savefig(buffer, format="png")
            return buffer.getvalue()

    return Picture(layout="constrained", **options)


def as_drawn(name: Any) -> str:
    """A word, or a name out of data, as it stands: what is between two dollars is no formula."""
    return str(name).replace("$", r"\$")
