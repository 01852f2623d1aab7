"""Estimators on disk: a directory that any later version of the package can read.

    config.json        format and package version, the class, every parameter, fitted values
    model.safetensors  the arrays that config.json refers to
    vocab.txt          the names of the columns, one a line, where they are known
    history.jsonl      what happened during the fit, one step a line

Loading runs no code of the file: classes and their parts come from fixed lists, every array is held
against the type, shape and checksum in config.json, and the parts against each other.

A parameter that cannot be stored (a schedule of one's own, say) is stored as null, with a note
under ``not_stored`` and a warning: the fitted model does not need it.
"""

from __future__ import annotations

import json
import math
import os
import warnings
import zlib
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tempering import __version__
from tempering.estimators.loaded_checks import check_features, check_mixture, check_topics
from tempering.estimators.recipe import Recipe
from tempering.estimators.words import words_of
from tempering.inference import History
from tempering.inference.portable import expect, expect_count, make_portable
from tempering.inference.portable_classes import (
    COLUMNS,
    pack,
    pack_history,
    unpack,
    unpack_history,
)
from tempering.storage.atomic import as_path, atomic_directory
from tempering.storage.tensors import (
    StorageError,
    damage,
    flatten,
    naming,
    parse_json,
    read_arrays,
    unflatten,
    write_arrays,
)

FORMAT = 1

#: The classes that can be loaded, and what holds their parts against each other.
ESTIMATORS = {
    "BayesianGaussianMixture": check_mixture,
    "BernoulliMixture": check_mixture,
    "FactorialMixture": check_features,
    "LatentDirichletAllocation": check_topics,
    "PoissonMixture": check_mixture,
}

KEYS = {
    "format",
    "package",
    "estimator",
    "parameters",
    "not_stored",
    "fitted",
    "feature_names",
    "vocab.txt",
    "history.jsonl",
    "history_weights",
    "checksum",
}


class SaveMixin:
    """``save``, for estimators."""

    def save(
        self,
        path: str | os.PathLike[str],
        vocabulary: Sequence[str] | None = None,
        *,
        overwrite: bool = False,
    ) -> None:
        """Save the fitted estimator; :func:`tempering.load` gives it back.

        Parameters
        ----------
        path : path
            The directory to make. It appears whole, or not at all.
        vocabulary : sequence of str, optional
            Names of the columns: the words, for topics. By default those of the fit, if X had any.
            A loaded estimator has them as ``vocabulary_``.
        overwrite : bool
            Replace a model that is there already.
        """
        check_is_fitted(self)
        _check_place(as_path(path), overwrite)
        words = _words(self, vocabulary)
        with atomic_directory(path, overwrite=overwrite) as directory:
            _write(self, directory, words)


def load(path: str | os.PathLike[str]) -> Any:
    """Load an estimator that was saved with its ``save`` method.

    Loading runs no code of the file.

    Parameters
    ----------
    path : path
        The directory.

    Returns
    -------
    estimator
        It predicts with the same bits as the one that was saved, and goes on with ``partial_fit``
        where that one would have.

    Raises
    ------
    tempering.storage.StorageError
        If a file is missing, damaged, or of a later format. It is a ``ValueError``.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import tempering
    >>> X = np.repeat([[4, 3, 0, 0], [0, 0, 5, 4]], 50, axis=0)
    >>> lda = tempering.LatentDirichletAllocation(n_components=2, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lda.save(f"{folder}/model", ["sun", "sea", "snow", "ice"])
    ...     loaded = tempering.load(f"{folder}/model")
    >>> np.array_equal(lda.transform(X), loaded.transform(X))
    True
    >>> sorted(loaded.topics(n_words=2))
    [['snow', 'ice'], ['sun', 'sea']]
    """
    path = as_path(path)
    config = _read_config(path / "config.json")
    words = _read_words(path / "vocab.txt", config["vocab.txt"])
    lines = _read_text(path / "history.jsonl", config["history.jsonl"])
    arrays, _ = read_arrays(path / "model.safetensors")
    with naming(path), damage():
        stored = {name: unflatten(config[name], arrays) for name in ("parameters", "fitted")}
        weights = unflatten(config["history_weights"], arrays)
        parameters = unpack(stored["parameters"])
        estimator = _estimator(config["estimator"], parameters)
        for name, value in unpack(stored["fitted"]).items():
            # Data of the file may not take the place of a method, or of anything of the class.
            expect(name.isidentifier() and not name.startswith("__"), f"bad name {name!r:.40}.")
            taken = hasattr(type(estimator), name) or name in parameters
            expect(not taken, f"bad name {name!r:.40}.")
            setattr(estimator, name, value)
        expect_count("n_features_in_", getattr(estimator, "n_features_in_", None), 1)
        if lines is not None:
            estimator.history_ = _history(lines, weights)
        for attribute, names in (
            ("vocabulary_", words),
            ("feature_names_in_", config["feature_names"]),
        ):
            if names is not None:
                _check_names(names, estimator.n_features_in_)
                setattr(estimator, attribute, np.array(names, dtype=object))
        ESTIMATORS[config["estimator"]](estimator)
    return estimator


def _check_place(path: Path, overwrite: bool) -> None:
    if path.exists() and not overwrite:
        raise FileExistsError(
            f"{path} exists already: pass overwrite=True to replace a saved model, or choose "
            "another path."
        )
    if path.exists() and not (path / "config.json").is_file():
        raise FileExistsError(f"{path} is not a saved model, and is not replaced.")


def _words(estimator: Any, vocabulary: Sequence[str] | None) -> list[str] | None:
    """The names of the columns, as they go into vocab.txt."""
    vocabulary = words_of(estimator, vocabulary)
    if vocabulary is None:
        return None
    words = [str(word) for word in vocabulary]
    broken = next((word for word in words if "\n" in word), None)
    if broken is not None:
        raise ValueError(f"vocabulary holds a word with a line break: {broken!r}.")
    return words


def _write(estimator: Any, directory: Path, words: list[str] | None) -> None:
    parameters, not_stored = _parameters(estimator)
    fitted = {
        name: value
        for name, value in vars(estimator).items()
        if name not in estimator.get_params(deep=False)
    }
    history = fitted.pop("history_", None)
    names = fitted.pop("feature_names_in_", None)
    fitted.pop("vocabulary_", None)
    columns = pack_history(history) if history is not None else {}
    weights = {name: columns.pop(name) for name in ("weights", "n_weights") if name in columns}
    tree = {"parameters": parameters, "fitted": pack(fitted), "history_weights": weights}
    value, arrays = flatten(tree)
    texts = {
        "vocab.txt": None if words is None else "".join(f"{word}\n" for word in words),
        "history.jsonl": None if history is None else _history_lines(columns),
    }
    config = {
        "format": FORMAT,
        "package": __version__,
        "estimator": type(estimator).__name__,
        **value,
        "not_stored": not_stored,
        "feature_names": None if names is None else [str(name) for name in names],
        **{name: None if text is None else _checksum(text) for name, text in texts.items()},
    }
    config["checksum"] = _config_checksum(config)
    for name, text in texts.items():
        if text is not None:
            (directory / name).write_bytes(text.encode())
    (directory / "config.json").write_text(json.dumps(config, indent=1, allow_nan=False))
    write_arrays(directory / "model.safetensors", arrays)


def _parameters(estimator: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """The parameters, packed, and those that cannot be stored, in words."""
    parameters, not_stored = {}, {}
    for name, value in estimator.get_params(deep=False).items():
        if name == "executor":  # a connection, not a part of the model
            continue
        try:
            parameters[name] = pack(value)
            flatten(parameters[name])
        except StorageError as error:
            parameters[name] = None
            not_stored[name] = str(error)
            warnings.warn(
                f"the parameter {name} of {type(estimator).__name__} is stored as null: {error}",
                UserWarning,
                stacklevel=4,
            )
    return parameters, not_stored


def _estimator(name: str, parameters: dict[str, Any]) -> Any:
    cls = getattr(import_module("tempering.estimators"), name)
    unknown = parameters.keys() - set(cls._get_param_names())
    expect(not unknown, f"{name} has no parameter {', '.join(sorted(unknown))!r:.60}.")
    estimator = cls(**parameters)
    estimator._validate_params()
    return estimator


def _read_config(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise StorageError(f"{path} is missing: is {path.parent} a model that was saved?")
    with naming(path), damage():
        config = parse_json(path.read_bytes())
        expect(isinstance(config, dict) and "format" in config, "it is no description of a model.")
        number = config["format"]
        expect_count("format", number, 1)
        expect(
            number <= FORMAT,
            f"it has format {number}, which is later than {FORMAT}, the last that this version of "
            f"tempering ({__version__}) can read: upgrade tempering.",
        )
        expect(config.keys() == KEYS, "it is damaged: entries are missing, or too many.")
        checksum = config.pop("checksum")
        expect(
            checksum == _config_checksum(config),
            "it has not the content that was written: it is damaged, or was edited. (Parameters "
            "can be changed with set_params after loading.)",
        )
        expect(config["estimator"] in ESTIMATORS, f"unknown class {config['estimator']!r:.40}.")
        for name in ("parameters", "fitted", "history_weights"):
            expect(isinstance(config[name], dict), f"{name} must be an object.")
    return config


def _read_text(path: Path, checksum: Any) -> str | None:
    """A text file with its checksum; None where there is none to be."""
    if checksum is None:
        return None
    with naming(path), damage():
        expect(path.is_file(), "it is missing.")
        text = path.read_bytes().decode()
        expect(_checksum(text) == checksum, "it is damaged: its checksum is wrong.")
    return text


def _read_words(path: Path, checksum: Any) -> list[str] | None:
    text = _read_text(path, checksum)
    return None if text is None else text.split("\n")[:-1]


def _check_names(names: Any, n_columns: int) -> None:
    right = isinstance(names, list) and all(isinstance(name, str) for name in names)
    expect(right and len(names) == n_columns, f"there must be {n_columns} names of columns.")


def _history_lines(columns: dict[str, Any]) -> str:
    """One step a line; what was not computed is null."""
    columns = {name: column.tolist() for name, column in columns.items()}
    rows = zip(*columns.values())
    records = (dict(zip(columns, (_plain(value) for value in row))) for row in rows)
    return "".join(json.dumps(record, allow_nan=False) + "\n" for record in records)


def _plain(value: Any) -> Any:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else str(value)


def _history(lines: str, weights: dict[str, Any]) -> History:
    records = [parse_json(line) for line in lines.splitlines()]
    columns: dict[str, Any] = {
        name: np.array(
            [math.nan if record[name] is None else record[name] for record in records],
            np.dtype(kind),
        )
        for name, kind in {**COLUMNS, "final": "?"}.items()
    }
    return unpack_history({**columns, **weights})


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode())


def _config_checksum(config: dict[str, Any]) -> int:
    return _checksum(json.dumps(config, sort_keys=True))


def _unpack_random_state(parts: dict[str, Any]) -> np.random.RandomState:
    position = parts["state"]["pos"]
    # NumPy would read at this place without looking.
    expect(isinstance(position, int) and 0 <= position <= 624, "a random state is damaged.")
    random_state = np.random.RandomState()
    random_state.set_state(parts)
    return random_state


make_portable(Recipe, "recipe", unpack=lambda parts: Recipe(**parts))
make_portable(
    np.random.RandomState,
    "random_state",
    lambda random_state: random_state.get_state(legacy=False),
    _unpack_random_state,
)
