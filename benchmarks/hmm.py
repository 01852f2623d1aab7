"""Hidden Markov models beside hmmlearn: seconds an iteration, and how often the truth is found.

    python benchmarks/hmm.py speed
    python benchmarks/hmm.py optima --seeds 40

Both need hmmlearn (``pip install hmmlearn``); without it this package runs alone.

* ``speed``: 1,000 sequences of 200 steps, four columns, diagonal covariances, one thread, on the
  same data in one run. hmmlearn has two implementations: "log", its default, and "scaling".
* ``optima``: data drawn anew for each seed. ``found``: the log likelihood at the fit is less than
  5 nats below that at the truth (a fit that has found it lies above); ``gap``: how far it is below,
  on the average. The fits are scored by the same function.
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from tempering import Annealing, CategoricalHMM, GaussianHMM, schedules

try:
    from hmmlearn import hmm as peer  # pyright: ignore[reportMissingImports]
except ImportError:
    peer = None
    print("hmmlearn is not installed: only this package is run (pip install hmmlearn).")

CLOSE = 5.0


class Data(NamedTuple):
    """Sequences, and the model that they were drawn from."""

    X: np.ndarray
    lengths: list[int]
    truth: Any


def drawn(truth: Any, n: int, length: int, seed: int, **parameters: Any) -> Data:
    """n sequences from a model with these parameters."""
    for name, value in parameters.items():
        setattr(truth, name, np.asarray(value))
    rng = np.random.RandomState(seed)
    X = np.concatenate([truth.sample(length, random_state=rng)[0] for _ in range(n)])
    return Data(X, [length] * n, truth)


def learning(seed: int) -> Data:
    """A skill that is learned once, seen through right and wrong answers."""
    return drawn(
        CategoricalHMM(2),
        100,
        20,
        seed,
        startprob_=[0.7, 0.3],
        transmat_=[[0.9, 0.1], [0.0, 1.0]],
        emissionprob_=[[0.75, 0.25], [0.05, 0.95]],
    )


def widths(seed: int) -> Data:
    """Six states around one centre, which differ in their variances alone."""
    variances = [[0.2, 0.2], [0.2, 3], [3, 0.2], [3, 3], [0.2, 20], [20, 0.2]]
    return drawn(
        GaussianHMM(6),
        20,
        100,
        seed,
        startprob_=np.full(6, 1 / 6),
        transmat_=0.04 + 0.76 * np.eye(6),
        means_=np.zeros((6, 2)),
        covars_=variances,
    )


def circles(seed: int) -> Data:
    """Three places, gone round either way: pairs of states that differ in transitions alone."""
    moves = np.full((6, 6), 0.02)
    moves[np.arange(6), [1, 2, 0, 5, 3, 4]] += 0.88
    return drawn(
        GaussianHMM(6),
        20,
        100,
        seed,
        startprob_=np.full(6, 1 / 6),
        transmat_=moves,
        means_=[[0.0], [2.0], [4.0]] * 2,
        covars_=np.full((6, 1), 0.5),
    )


def ours(**options: Any) -> Callable[[Data, int], Any]:
    """A fit of this package."""

    def fit(data: Data, seed: int) -> Any:
        make, k = type(data.truth), data.truth.n_components
        return make(k, random_state=seed, n_jobs=1, **options).fit(data.X, data.lengths)

    return fit


def theirs(restarts: int) -> Callable[[Data, int], Any]:
    """hmmlearn's EM, the best of some restarts, as a model of this package to be scored alike."""

    def fit(data: Data, seed: int) -> Any:
        make, k = type(data.truth), data.truth.n_components
        best, highest = None, -np.inf
        for restart in range(restarts):
            found = getattr(peer, make.__name__)(
                k, n_iter=300, tol=1e-3, random_state=1000 * seed + restart
            ).fit(data.X, data.lengths)
            if (score := found.score(data.X, data.lengths)) > highest:
                best, highest = found, score
        scored = make(k)
        for name in ("startprob_", "transmat_", "emissionprob_", "means_", "_covars_"):
            if hasattr(best, name):
                setattr(scored, name, getattr(best, name))
        return scored

    return fit


def optima(seeds: int) -> None:
    """How often each way finds what the data were drawn from."""
    ways = {
        "VI": ours(tempering=None),
        "annealing, T = 1.1 (default)": ours(),
        "annealing, T = 2": ours(tempering=Annealing(schedules.linear(2.0), fraction=1 / 3)),
        "default, n_init=10": ours(n_init=10),
    }
    if peer is not None:
        ways |= {"hmmlearn": theirs(1), "hmmlearn, best of 10": theirs(10)}
    for case in (learning, widths, circles):
        print(f"\n{case.__name__}: {(case.__doc__ or '').strip()}")
        print(f"{'':30} {'found':>9} {'gap':>8} {'seconds':>8}")
        sets = [case(seed) for seed in range(seeds)]
        truths = [data.truth.score(data.X, data.lengths) for data in sets]
        for name, fit in ways.items():
            began = time.perf_counter()
            found = [fit(data, seed) for seed, data in enumerate(sets)]
            seconds = (time.perf_counter() - began) / seeds
            gaps = np.array(
                [
                    truth - hmm.score(data.X, data.lengths)
                    for truth, hmm, data in zip(truths, found, sets)
                ]
            )
            right = f"{np.sum(gaps < CLOSE)} of {seeds}"
            print(f"{name:30} {right:>9} {gaps.mean():8.1f} {seconds:8.2f}", flush=True)


def speed(states: list[int], passes: int) -> None:
    """Seconds an iteration, without the start."""
    rng = np.random.default_rng(0)
    X, lengths = rng.normal(size=(200_000, 4)), [200] * 1000
    for k in states:
        short = GaussianHMM(k, tempering=None, tol=0.0, n_jobs=1, random_state=0, n_iter=1)
        short.fit(X, lengths)  # compiles
        long = GaussianHMM(k, tempering=None, tol=0.0, n_jobs=1, random_state=0, n_iter=passes + 1)
        steps = long.fit(X, lengths).history_["seconds"]
        own = (steps[-1] - steps[0]) / passes
        line = f"K = {k:2}: this package {own:.3f} s"
        for implementation in ("log", "scaling") if peer is not None else ():
            hmm = peer.GaussianHMM(  # pyright: ignore[reportOptionalMemberAccess]
                k, n_iter=1, tol=-np.inf, implementation=implementation, random_state=0
            )
            hmm._init(X, lengths)
            hmm.init_params = ""
            began = time.perf_counter()
            hmm.fit(X, lengths)
            seconds = time.perf_counter() - began
            line += f"; hmmlearn ({implementation}) {seconds:.3f} s, {seconds / own:.1f} x"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["speed", "optima"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--states", type=int, nargs="+", default=[5, 20, 50])
    parser.add_argument("--passes", type=int, default=5)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    with threadpool_limits(limits=1):
        if asked.what == "speed":
            speed(asked.states, asked.passes)
        else:
            optima(asked.seeds)


if __name__ == "__main__":
    main()
