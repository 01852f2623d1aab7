"""The Extended Yale Face Database B, out of its PGM images."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempering.corpus.checks import check_size, fail, reading

#: The header: numbers apart by white space, and comments up to the end of a line.
PGM = re.compile(rb"P5" + 3 * rb"(?:\s|#[^\n]*\n)++(\d{1,6}+)" + rb"\s")
NAME = re.compile(r"yaleB(\d\d)_P\d\dA([+-]\d+)E([+-]\d+)\.pgm(\.bad)?")


class YaleFaces(NamedTuple):
    """Faces under many lights.

    ``images`` uint8 [n, height, width]; for each, the ``subject`` (from 1), the ``azimuth`` and
    ``elevation`` of the light in degrees, and whether the image is marked as ``bad``.

    Examples
    --------
    >>> from tempering.datasets import YaleFaces
    >>> YaleFaces._fields
    ('images', 'subject', 'azimuth', 'elevation', 'bad')
    """

    images: NDArray[np.uint8]
    subject: NDArray[np.int64]
    azimuth: NDArray[np.int64]
    elevation: NDArray[np.int64]
    bad: NDArray[np.bool_]


def load_yale_faces(path: str | os.PathLike[str], reduce: int = 1) -> YaleFaces:
    """Read the cropped images of the Extended Yale Face Database B.

    Parameters
    ----------
    path : path
        The folder of ``CroppedYale``, or a zip file of it.
    reduce : int
        Replace squares of so many pixels by their mean: 2 makes 96 × 84 of 192 × 168.

    Returns
    -------
    YaleFaces
        In the order of subject, azimuth and elevation. Images of ambient light are left out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from tempering.datasets import load_yale_faces
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     image = b"P5\\n2 2\\n255\\n" + bytes([0, 10, 20, 30])
    ...     _ = (Path(folder) / "yaleB01_P00A+000E+00.pgm").write_bytes(image)
    ...     load_yale_faces(folder, reduce=2).images
    array([[[15]]], dtype=uint8)
    """
    if reduce < 1:
        raise ValueError(f"reduce must be at least 1; got {reduce}.")
    path = Path(path)
    images, labels = [], []
    for name, content in _files(path):
        match = NAME.fullmatch(name.rsplit("/", 1)[-1])
        if match is None:
            continue
        image = _reduced(_read_pgm(f"{path}, {name}", content), reduce)
        if images and image.shape != images[0].shape:
            problem = f"it is {image.shape}, but the first image is {images[0].shape}."
            fail(path, name, problem)
        images.append(image)
        labels.append([int(match[1]), int(match[2]), int(match[3]), match[4] is not None])
    if not images:
        fail(path, "", "there is no image named like yaleB01_P00A+000E+00.pgm.")
    table = np.array(labels, np.int64)
    order = np.lexsort((table[:, 2], table[:, 1], table[:, 0]))
    subject, azimuth, elevation, bad = table[order].T
    return YaleFaces(np.stack(images)[order], subject, azimuth, elevation, bad.astype(bool))


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files of a folder or a zip file, in order of the names."""
    if path.is_dir():
        for file in sorted(path.rglob("*.pgm*")):
            yield file.relative_to(path).as_posix(), file.read_bytes()
        return
    with reading(path), zipfile.ZipFile(path) as archive:
        check_size(path, sum(info.file_size for info in archive.infolist()))
        for info in sorted(archive.infolist(), key=lambda info: info.filename):
            if NAME.fullmatch(info.filename.rsplit("/", 1)[-1]):
                yield info.filename, archive.read(info)


def _read_pgm(where: str, content: bytes) -> NDArray[np.uint8]:
    """A binary PGM image of 8 bits."""
    header = PGM.match(content)
    if header is None:
        problem = "the header of a PGM image should be P5, width, height and 255;"
        fail(where, "line 1", f"{problem} got {content[:30]!r}.")
    width, height, largest = map(int, header.groups())
    if not 0 < largest < 256 or width * height == 0:
        problem = f"it should have pixels, of 8 bits; got {width} x {height} up to {largest}."
        fail(where, "line 1", problem)
    n_bytes = len(content) - header.end()
    if n_bytes != width * height:
        problem = f"{width} x {height} pixels are promised, {n_bytes} bytes are there."
        fail(where, "", problem)
    return np.frombuffer(content, np.uint8, offset=header.end()).reshape(height, width)


def _reduced(image: NDArray[np.uint8], by: int) -> NDArray[np.uint8]:
    """An image with squares of pixels replaced by their mean; odd edges are cut off."""
    height, width = (size // by for size in image.shape)
    if by == 1 or height * width == 0:
        return image
    squares = image[: height * by, : width * by].reshape(height, by, width, by)
    return np.rint(squares.mean(axis=(1, 3))).astype(np.uint8)
