"""``tempering info``: versions and devices; what a model or a corpus is."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from tempering.cli.options import Json, TextOptions, as_given
from tempering.cli.printing import error_console, print_facts, print_json

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "safetensors", "rich", "typer")
OPTIONAL = ("matplotlib", "pyarrow", "pooch", "jax", "dask")


def info(
    path: Annotated[
        Path | None,
        typer.Argument(metavar="[MODEL|CORPUS]", parser=as_given, help="What to look at."),
    ] = None,
    warm: Annotated[
        bool, typer.Option("--warm", help="Compile all kernels now; later fits find them on disk.")
    ] = False,
    as_json: Json = False,
    *,
    texts: TextOptions,
) -> None:
    """Say what is installed, or what a model or a corpus is.

    \b
    Examples:
      tempering info
      tempering info --warm
      tempering info model
      tempering info 20news.npz
    """

    if path is None:
        facts = _installation()
    elif (path / "config.json").is_file():
        facts = _model(path)
    else:
        facts = _corpus(path, texts)
    if warm:
        facts["compiled_in_s"] = _compile_kernels()
    if as_json:
        print_json(facts)
    else:
        print_facts((name.replace("_", " "), _shown(value)) for name, value in facts.items())


def _compile_kernels() -> float:
    """Compile what the estimators of this package compile, by small fits; return the seconds."""
    import warnings

    import numpy as np

    from tempering import estimators
    from tempering.datasets import make_lda
    from tempering.models.compilation import working_seconds

    began, worked = time.perf_counter(), working_seconds()
    documents = make_lda(100, 4, n_words=50, seed=0).counts
    rows = np.random.default_rng(0).normal(size=(8000, 2))
    with error_console().status("Compiling, once"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that have not converged
        for update in ("sampled", "variational"):
            for tempering in ("auto", "local"):
                topics = estimators.LatentDirichletAllocation(
                    4, update=update, tempering=tempering, max_iter=4, random_state=0
                )
                topics.fit(documents).transform(documents)
        topics.perplexity(documents)
        hidden = estimators.GaussianHMM(2, n_iter=2, n_init=1, random_state=0)
        hidden.fit(rows).predict(rows)
        estimators.PoissonFactorization(2, max_iter=2, random_state=0).fit(documents)
        for n_components in (3, 20):  # solved exactly, and not
            estimators.FactorialMixture(n_components, max_iter=2, random_state=0).fit(rows[:100])
    return max(0.0, round((time.perf_counter() - began) - (working_seconds() - worked), 1))


def _installation() -> dict[str, Any]:
    import platform
    from importlib import metadata

    from tempering import __version__
    from tempering.inference.executors import number_of_threads
    from tempering.storage import cache_directory

    facts: dict[str, Any] = {
        "tempering": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": number_of_threads(None),
        "cache": str(cache_directory()),
    }
    for name in (*PACKAGES, *OPTIONAL):
        try:
            facts[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            facts[name] = None
    return facts


def _model(path: Path) -> dict[str, Any]:
    from tempering.cli.validation import read_scores
    from tempering.estimators.saving import load

    model = load(path)
    parameters = {
        name: value if isinstance(value, str | int | float | None) else repr(value)
        for name, value in model.get_params(deep=False).items()
    }
    facts = {"estimator": type(model).__name__, "columns": getattr(model, "n_features_in_", None)}
    words = getattr(model, "vocabulary_", None)
    if words is not None:
        facts["first_words"] = " ".join(words[:8])
    history = getattr(model, "history_", None)
    if history:
        last = history[-1]
        facts |= {"steps": len(history), "passes": round(last.passes, 4)}
        facts |= {"rows": round(last.data_seen / last.passes), "seconds": round(last.seconds, 2)}
    if scores := read_scores(path)[1]:
        facts["held_out_score"] = scores[-1][1]
    return {**facts, "parameters": parameters}


def _corpus(path: Path, texts: TextOptions) -> dict[str, Any]:
    from tempering.cli.corpora import Reading, say_if_counted, streams

    with error_console().status(f"Reading {path}"):
        reading = Reading(path, texts)
        stored = reading.open()
        say_if_counted(stored, reading)
        n_tokens, n_empty = 0, 0
        for block in stored.blocks():
            n_tokens += block.sum(dtype="f8" if block.dtype.kind == "f" else "i8").item()
            n_empty += int((block.sum(axis=1) == 0).sum())
    n_documents, n_words = stored.shape
    words = stored.vocabulary
    return {
        "corpus": str(path),
        "documents": n_documents,
        "words": n_words,
        "tokens": int(n_tokens) if n_tokens == int(n_tokens) else n_tokens,
        "mean_length": round(n_tokens / max(n_documents, 1), 1),
        "empty_documents": n_empty,
        "streams": streams(stored),
        "first_words": None if words is None else " ".join(words[:8]),
        "first_name": None if stored.names is None else next(iter(stored.names), None),
    }


def _shown(value: Any) -> Any:
    """A value as people read it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name}={entry}" for name, entry in value.items())
    return value
