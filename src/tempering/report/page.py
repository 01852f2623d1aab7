"""The report as one HTML file that needs nothing else: no library, no network."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from tempering.estimators import LatentDirichletAllocation
from tempering.report.data import ReportData, collect, fit_digest
from tempering.storage.atomic import as_path, atomic_file, check_free

#: Put together in this order; each may use what stands before it.
SCRIPTS = "elements charts fit map topics highlight shares tree documents page"


def write_report(
    data: ReportData | LatentDirichletAllocation,
    path: str | os.PathLike[str],
    X: Any = None,
    *,
    overwrite: bool = False,
    **told: Any,
) -> None:
    """Write the page; it appears when it is whole, or not at all.

    Parameters
    ----------
    data : ReportData or LatentDirichletAllocation
        What :func:`tempering.report.collect` computed; or a fitted model, of which it is computed.
    path : path
        The HTML file.
    X, told
        With a model: the documents and the other arguments of :func:`tempering.report.collect`.
    overwrite : bool
        Whether a file of that name may be replaced.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.report import write_report
    >>> X = [[4, 3, 0, 0]] * 50 + [[0, 0, 5, 4]] * 50
    >>> lda = LatentDirichletAllocation(n_components=2, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(lda, Path(folder) / "report.html", X, title="Seasons")
    ...     (Path(folder) / "report.html").stat().st_size > 10_000
    True
    """
    collected = isinstance(data, ReportData)
    check_place(as_path(path), overwrite, data.facts["fit"] if collected else fit_digest(data))
    if not collected:
        data = collect(data, X, **told)
    elif X is not None or told:
        given = ", ".join(["X"] * (X is not None) + sorted(told))
        raise ValueError(f"{given} belongs to collect: the report is computed already.")
    page = render(data)
    with atomic_file(path) as aside:
        # A file name that is not UTF-8 holds half characters, which no page can.
        aside.write_bytes(page.encode("utf-8", errors="replace"))


def check_place(path: Path, overwrite: bool, fit: str) -> None:
    """Refuse to replace a folder, and a file unless ``overwrite``, before the work.

    ``fit`` is the digest of the model: ``overwrite`` is proposed for a report of the same fit only.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file, such as {path / 'report.html'}.")
    if path.exists() and not overwrite and not _is_report_of(path, fit):
        raise FileExistsError(
            f"{path} exists already and is not a report of this fit: choose another path."
        )
    check_free(path, overwrite, "overwrite=True (--overwrite)")


def _is_report_of(path: Path, fit: str) -> bool:
    with open(path, "rb") as file:  # the digest is in the head of the page, before the style
        return f'<meta name="fit" content="{fit}">'.encode() in file.read(4096)


def render(data: ReportData) -> str:
    """The page as text; its policy allows its own script and style alone, so nothing is fetched."""
    style = _asset("style.css")
    scripts = "\n".join(_asset(f"{name}.js") for name in SCRIPTS.split())
    script = "(() => {\n'use strict';\n" + scripts + "})();\n"
    parts = {
        "title": html.escape(data.title),
        "fit": data.facts["fit"],
        "policy": (
            f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
            "base-uri 'none'; form-action 'none'"
        ),
        "style": style,
        "script": script,
        "data": embedded_json(vars(data)),
    }
    # All at once: a part may hold what looks like the place of another.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _asset("template.html"))


def embedded_json(value: Any) -> str:
    """JSON that may stand inside a ``<script>`` element: nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _asset(name: str) -> str:
    return files("tempering.report").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """What a security policy calls this very text."""
    # Browsers hash the element's text after they have made all line ends "\n".
    code = hashlib.sha256(text.replace("\r\n", "\n").encode()).digest()
    return "sha256-" + base64.b64encode(code).decode()
