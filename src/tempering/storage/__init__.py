"""Files that appear whole or not at all; trees of arrays on disk; where files are kept."""

import os
import sys
from pathlib import Path


def cache_directory() -> Path:
    """The directory for data that can be made or fetched again.

    ``TEMPERING_CACHE`` if it is set; else the platform's place for such files: on Linux
    ``XDG_CACHE_HOME/tempering``, by default ``~/.cache/tempering``.

    Examples
    --------
    >>> from tempering.datasets import cache_directory
    >>> cache_directory().is_absolute()
    True
    """
    if chosen := os.environ.get("TEMPERING_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "tempering"
