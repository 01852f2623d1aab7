"""Estimators on disk, as directories that :mod:`tempering.storage.state` writes and reads.

A parameter that cannot be stored (a schedule of one's own, say) is stored as null, with a note
under ``not_stored`` and a warning: the fitted model does not need it.
"""

import os
import warnings
from collections.abc import Sequence
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tempering.estimators.words import WORD_ATTRIBUTES, words_of
from tempering.inference import History
from tempering.inference.run import State
from tempering.models.base import Array, Model
from tempering.storage.atomic import as_path, check_free
from tempering.storage.state import (
    CONFIG,
    StorageError,
    expect,
    fits,
    read_tree,
    reading,
    stored,
    to_json,
    write_tree,
)
from tempering.temperature import COLD, Untempered


class SaveMixin:
    """``save``, for estimators."""

    #: Columns that the model sees, beside those of X.
    _more_columns = 0

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
        check_place(as_path(path), overwrite)
        words = words_of(self, vocabulary)
        parameters, not_stored = _parameters(self)
        fitted = {name: value for name, value in vars(self).items() if name not in parameters}
        fitted.pop("executor", None)
        if "tempering" in not_stored and "_stream_policy" in fitted:
            # A stream of topics that it still heats goes on at T = 1, as others do without it.
            fitted["_stream_policy"] = Untempered()
            fitted["_state"] = fitted["_state"]._replace(heat=COLD)
        if words is not None:
            fitted["vocabulary_"] = np.array([str(word) for word in words], dtype=object)
        try:
            _made(type(self).__name__, parameters, fitted)._check_loaded()
        except ValueError as error:
            raise ValueError(f"it is not saved, as it could not be loaded: {error}") from error
        tree = {"parameters": parameters, "not_stored": not_stored, "fitted": fitted}
        write_tree(path, "model", {"estimator": type(self).__name__, **tree})

    def _check_loaded(self: Any) -> None:
        """Hold a posterior against the model and the parameters: kernels trust shapes of arrays."""
        expect_kinds(self, _state=State)
        asked = self.n_components, self.n_features_in_
        made = callable(self._model)  # of the parameters
        if made:  # which may ask for any size
            expect_kinds(self, _component_prior=Array, weights_=np.ndarray)
            shape = np.shape(self._state.posterior["components"])
            right = len(shape) == 2 and shape[0] == asked[0] and shape[1] >= asked[1]
            expect(right, f"the components have the shape {shape}; the parameters ask for {asked}.")
            expect_shape(self, "_component_prior", shape[1:])
        model: Any = self._model() if made else self._model
        expect(isinstance(model, Model), "_model is missing, or damaged.")
        # What models call their sizes: of components, and of columns.
        sizes = ("n_topics", "n_words"), ("n_features", "dimension"), ("n_components", "n_columns")
        for names in () if made else sizes:
            found = tuple(getattr(model, name, None) for name in names)
            right = None in found or found == (asked[0] or found[0], asked[1])
            expect(right, f"the model has the shape {found}; the parameters ask for {asked}.")
        model.check_parameters()
        model.check_posterior(self._state.posterior)
        if hasattr(self, "_centre"):
            expect_shape(self, "_centre", (self.n_features_in_ + self._more_columns,))

    def _check_exposed(self: Any, model: Any) -> None:
        """Raise unless the attributes have the shapes of those that the posterior gives."""
        right = copy(self)
        right._expose(model)
        for name, value in vars(right).items():
            if isinstance(value, np.ndarray):
                expect_shape(self, name, value.shape)


def load(path: str | os.PathLike[str]) -> Any:
    """Load an estimator from the directory that its ``save`` method wrote.

    Loading runs no code of the file. The estimator predicts with the same bits as the saved one,
    and ``partial_fit`` continues where the saved one would have; but no documents are stored, by
    which a stream of topics, in its first 15,000 or 75%, would raise the sum of α.

    Raises
    ------
    tempering.StorageError
        If a file is missing, damaged, or of another format. It is a ``ValueError``.

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
    config = as_path(path) / CONFIG
    estimators = import_module("tempering.estimators")
    for name in estimators.__all__:
        getattr(estimators, name)  # loads the classes of what a file may hold
    try:
        tree = read_tree(path, "model")
        with reading(config):
            estimator = _made(tree["estimator"], tree["parameters"], tree["fitted"])
            # Parameters that were set by hand have seen no columns.
            n_columns = getattr(estimator, "n_features_in_", 1)
            expect(fits(n_columns, int) and n_columns > 0, "n_features_in_ must be a number.")
            for name in WORD_ATTRIBUTES:
                expect_names(estimator, name, n_columns, "columns")
            estimator._check_loaded()
        return estimator
    except StorageError as error:
        if not config.is_file():
            raise
        remedy = "A damaged model can be restored from a copy, or fitted and saved again."
        raise StorageError(f"{error} {remedy}") from None


def check_place(path: Path, overwrite: bool, how: str = "overwrite=True") -> None:
    """Refuse to replace anything but a saved model, and that unless it is asked for."""
    if path.exists() and not (path / CONFIG).is_file():
        raise FileExistsError(
            f"{path} is not a saved model, and is not replaced: choose another path."
        )
    check_free(path, overwrite, how)


def _parameters(estimator: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """The parameters, and those that cannot be stored, in words."""
    parameters, not_stored = estimator.get_params(deep=False), {}
    parameters.pop("executor", None)  # a connection, not a part of the model
    for name, value in parameters.items():
        try:
            to_json(value, name, {})
        except StorageError as error:
            parameters[name] = None
            not_stored[name] = str(error)
            warnings.warn(
                f"the parameter {name} of {type(estimator).__name__} is stored as null: {error}",
                UserWarning,
                stacklevel=3,
            )
    return parameters, not_stored


def _made(name: str, parameters: dict[str, Any], fitted: dict[str, Any]) -> Any:
    """An estimator of its parameters and what it has fitted."""
    cls: Any = getattr(import_module("tempering.estimators"), name, None)
    expect(hasattr(cls, "_check_loaded"), f"unknown class {name!r:.40}.")
    unknown = parameters.keys() - set(cls._get_param_names())
    expect(not unknown, f"{name} has no parameter {', '.join(sorted(unknown))!r:.60}.")
    estimator = cls(**parameters)
    estimator._validate_params()
    for attribute, value in fitted.items():
        # Data of the file may not take the place of a method, or of anything of the class.
        right = attribute.isidentifier() and not attribute.startswith("__")
        free = not hasattr(cls, attribute) and attribute not in parameters
        expect(right and free, f"bad name {attribute!r:.40}.")
        numbers = isinstance(value, np.ndarray) and value.dtype.kind == "f"
        expect(not numbers or np.isfinite(value).all(), f"{attribute} must hold finite numbers.")
        setattr(estimator, attribute, value)
    return estimator


def _random_state(parts: dict[str, Any]) -> np.random.RandomState:
    position = parts["state"]["pos"]
    # NumPy would read at this place without looking.
    expect(fits(position, int) and 0 <= position <= 624, "a random state is damaged.")
    random_state = np.random.RandomState()
    random_state.set_state(parts)
    return random_state


stored("random_state", take=lambda state: state.get_state(legacy=False), make=_random_state)(
    np.random.RandomState
)


def expect_names(estimator: Any, name: str, n: int, what: str) -> None:
    """Raise unless the attribute holds so many names, or nothing."""
    names = getattr(estimator, name, None)
    right = isinstance(names, np.ndarray) and names.dtype == object and names.shape == (n,)
    expect(names is None or right, f"{name} must hold {n} names of {what}.")


def expect_shape(estimator: Any, name: str, shape: tuple[int, ...]) -> None:
    """Raise unless the attribute is an array of this shape."""
    found: Any = getattr(estimator, name, None)
    right = isinstance(found, np.ndarray) and found.shape == shape
    expect(right, f"{name} must be an array of the shape {shape}; got {np.shape(found)}.")


def expect_kinds(estimator: Any, **kinds: Any) -> None:
    """Raise unless the attributes are of these types."""
    for name, kind in {"history_": History | None, **kinds}.items():
        expect(fits(getattr(estimator, name, None), kind), f"{name} is missing, or damaged.")
