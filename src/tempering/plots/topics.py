"""In a notebook: how a fit went, and the words of topics."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tempering.estimators import LatentDirichletAllocation
from tempering.evaluation import top_words
from tempering.evaluation.checks import normalised
from tempering.inference import History
from tempering.models.arguments import check_whole
from tempering.plots.canvas import as_drawn, new_figure

#: Of a word; an address or a sequence of letters may have thousands.
MOST_CHARACTERS = 40


def _shortened(word: Any) -> str:
    """The beginning of a word."""
    text = str(word)
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"


def plot_temperature(history: History) -> Any:
    """The temperature by passes over the data; the final phase at T = 1 is shaded.

    Parameters
    ----------
    history : History
        ``history_`` of an estimator, or ``history`` of a fit.

    Examples
    --------
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.plots import plot_temperature
    >>> X = [[4, 3, 0, 0]] * 50 + [[0, 0, 5, 4]] * 50
    >>> lda = LatentDirichletAllocation(n_components=2, random_state=0).fit(X)
    >>> plot_temperature(lda.history_).axes[0].get_ylabel()
    'temperature'
    """
    _check_history(history)
    if not len(history):
        raise ValueError("history is empty: fit records one, partial_fit does not.")
    passes = history["passes"]
    figure = new_figure(figsize=(5.0, 3.2))
    axis = figure.subplots()
    marker = "o" if len(passes) < 30 else None
    axis.plot(passes, history["temperature"], lw=1.5, marker=marker, ms=3)
    final = np.flatnonzero(history["phase"] == "final")
    if final.size:
        axis.axvspan(passes[final[0]], passes[-1], color="0.93", zorder=0, label="T = 1")
    axis.set_xlabel("passes over the data")
    axis.set_ylabel("temperature")
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def plot_topics(
    model: LatentDirichletAllocation,
    vocabulary: Sequence[str] | None = None,
    *,
    n_words: int = 8,
    topics: Sequence[int] | None = None,
    columns: int = 5,
) -> Any:
    """Topics as a grid of bars, the probabilities of their top words; returns the figure.

    Parameters
    ----------
    model : LatentDirichletAllocation
        Fitted.
    vocabulary : sequence of str, optional
        The words; by default the feature names of the fit, or the numbers of the columns.
    n_words : int
        Words of a topic.
    topics : sequence of int, optional
        Which, by their numbers in the model; all by default.
    columns : int
        Topics in a row.

    Examples
    --------
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.plots import plot_topics
    >>> X = [[4, 3, 0, 0]] * 50 + [[0, 0, 5, 4]] * 50
    >>> lda = LatentDirichletAllocation(n_components=2, random_state=0).fit(X)
    >>> figure = plot_topics(lda, ["sun", "sea", "snow", "ice"], n_words=2)
    >>> [axis.get_title(loc="left") for axis in figure.axes]
    ['topic 0', 'topic 1']
    """
    check_is_fitted(model)
    check_whole(n_words=n_words, columns=columns)
    n_words = min(n_words, model.n_features_in_)
    names = model.topics(n_words, vocabulary)
    chosen = list(range(len(names)) if topics is None else np.atleast_1d(np.asarray(topics)))
    if not chosen or not all(isinstance(k, Integral) and 0 <= k < len(names) for k in chosen):
        raise ValueError(f"topics must be numbers from 0 to {len(names) - 1}; got {topics!r}.")
    probabilities = normalised(model.components_)
    places = top_words(probabilities, n_words)
    columns = min(columns, len(chosen))
    rows = -(-len(chosen) // columns)
    shown = {k: [_shortened(name) for name in names[k]] for k in chosen}
    longest = max(len(name) for words in shown.values() for name in words)
    # Phrases take more room than words do.
    size = columns * max(2.3, 1.2 + 0.07 * longest), 0.5 + rows * (0.5 + 0.19 * n_words)
    figure = new_figure(figsize=size)
    # One scale for all: a topic with a few strong words looks like one.
    axes = np.ravel(figure.subplots(rows, columns, squeeze=False, sharex=True))
    for axis, k in zip(axes, chosen):
        axis.barh(np.arange(n_words), probabilities[k, places[k]], color="#2e63c9", height=0.75)
        axis.set_yticks(np.arange(n_words), [*map(as_drawn, shown[k])], fontsize=8)
        axis.invert_yaxis()
        axis.set_title(f"topic {k}", fontsize=9, loc="left")
        axis.tick_params(axis="x", labelsize=7)
        axis.locator_params(axis="x", nbins=3)
        axis.tick_params(axis="y", length=0)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[len(chosen) :]:
        axis.set_axis_off()
    return figure


def _check_history(history: Any) -> None:
    """Refuse what is no history."""
    if not isinstance(history, History):
        kind = type(history).__name__
        raise ValueError(f"history must be that of a fit, such as model.history_; got {kind}.")


def plot_temperature_path(history: History) -> Any:
    """Temperature, energy and heat capacity by passes; where the temperature is held is shaded.

    The energy E is the expected log likelihood. The heat capacity is its rise for a rise of log s,
    s = 1/T: it peaks where components separate. That of minibatches would be noise, and is left
    out.

    Parameters
    ----------
    history : History
        ``history`` of a batch fit, or ``history_`` of an estimator, with the ELBO of each step. The
        policy must be ``AdaptiveTempering`` or ``Annealing``.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import AdaptiveTempering, Mixture, fit
    >>> from tempering.families import Dirichlet, IsotropicGaussian
    >>> from tempering.plots import plot_temperature_path
    >>> data = np.random.default_rng(0).normal(np.repeat([-3.0, 3.0], 100))[:, None]
    >>> model = Mixture(IsotropicGaussian(1, 1.0), Dirichlet(2), [1.0, 1.0], [0.0, 0.1])
    >>> result = fit(model, data, temperature=AdaptiveTempering())
    >>> [axis.get_ylabel() for axis in plot_temperature_path(result.history).axes]
    ['temperature', 'energy', 'heat capacity']
    """
    _check_history(history)
    if any(record.weights is not None for record in history):
        # q(T) is a part of their tempered ELBO too.
        raise ValueError(
            "history is that of VariationalTempering, whose ELBOs do not tell the energy: take "
            "plot_temperature, or fit with AdaptiveTempering or Annealing."
        )
    s = np.asarray(history["inverse_temperature"], float)
    elbo, tempered = history["elbo"], history["tempered_elbo"]
    hot = s < 1.0
    if not np.any(hot & np.isfinite(elbo)):
        raise ValueError(
            "history must hold tempered steps with an ELBO; this one has none. Fit with "
            "AdaptiveTempering or Annealing, and evaluate the ELBO at each step (elbo_every=1)."
        )
    passes = history["passes"]
    energy = np.full(s.size, np.nan)
    # L(s) = s E + S, and the ELBO is E + S.
    energy[hot] = (elbo[hot] - tempered[hot]) / (1.0 - s[hot])
    capacity = np.full(s.size, np.nan)
    rises = np.flatnonzero(hot[1:] & hot[:-1] & (s[1:] > s[:-1]) & (passes[0] >= 1.0)) + 1
    capacity[rises] = (energy[rises] - energy[rises - 1]) / np.log(s[rises] / s[rises - 1])
    held = np.r_[False, hot[1:] & (s[1:] == s[:-1])]

    figure = new_figure(figsize=(7, 6))
    axes = figure.subplots(3, sharex=True)
    columns = {"temperature": 1.0 / s, "energy": energy, "heat capacity": capacity}
    for axis, (label, values) in zip(axes, columns.items(), strict=True):
        marker = "." if label == "heat capacity" else None
        axis.plot(passes, values, marker=marker, linewidth=1.2, markersize=3)
        axis.set_ylabel(label)
        for start, end in _stretches(held):
            axis.axvspan(passes[start - 1], passes[end], color="tab:orange", alpha=0.2, linewidth=0)
    axes[0].set_yscale("log")
    axes[0].set_title("shaded: held, components are separating", fontsize="small", loc="left")
    axes[-1].set_xlabel("passes over the data")
    return figure


def _stretches(flags: np.ndarray) -> list[tuple[int, int]]:
    """First and last place of each run of true flags."""
    edges = np.flatnonzero(np.diff(np.r_[0, flags.astype(int), 0]))
    return [(int(start), int(end) - 1) for start, end in edges.reshape(-1, 2)]
