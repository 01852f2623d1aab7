"""Hidden Markov models beside hmmlearn: seconds an iteration, and how often the truth is found.

    python benchmarks/hmm.py speed
    python benchmarks/hmm.py optima --seeds 40
    python benchmarks/hmm.py optima --seeds 10 --cases many short shapes

Both need hmmlearn (``pip install hmmlearn``); without it this package runs alone. Seconds are those
of the processor, in one thread.

* ``speed``: 1,000 sequences of 200 steps, four columns, diagonal covariances, on the same data in
  one run, each in a process of its own. hmmlearn has two implementations: "log", its default, and
  "scaling".
* ``optima``: data drawn anew for each seed. ``found``: the log likelihood at the fit is less than
  5 nats below that at the truth (a fit that has found it lies above); ``gap``: how far it is below,
  on the average; ``held out``: the log likelihood of as many new sequences, a row, less that of the
  truth. The fits are scored by the same function. ``ELBO`` is that of this package's priors.
"""

from __future__ import annotations

import argparse
import logging
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from tempering import Annealing, CategoricalHMM, GaussianHMM, schedules

try:
    from hmmlearn import hmm as peer  # pyright: ignore[reportMissingImports]
    from hmmlearn import vhmm as bayesian_peer  # pyright: ignore[reportMissingImports]
except ImportError:
    peer = bayesian_peer = None
    print("hmmlearn is not installed: only this package is run (pip install hmmlearn).")

CLOSE = 5.0


class Data(NamedTuple):
    """Sequences, as many new ones, and the model that they were drawn from."""

    X: np.ndarray
    lengths: list[int]
    truth: Any
    new: np.ndarray


def drawn(truth: Any, n: int, length: int, seed: int, **parameters: Any) -> Data:
    """n sequences from a model with these parameters."""
    for name, value in parameters.items():
        setattr(truth, name, np.asarray(value))
    rng = np.random.RandomState(seed)
    X = np.concatenate([truth.sample(length, random_state=rng)[0] for _ in range(2 * n)])
    return Data(X[: n * length], [length] * n, truth, X[n * length :])


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


def many(seed: int) -> Data:
    """Twelve states on a line, each 1.5 standard deviations from the next."""
    return drawn(
        GaussianHMM(12),
        10,
        150,
        seed,
        startprob_=np.full(12, 1 / 12),
        transmat_=0.2 / 12 + 0.8 * np.roll(np.eye(12), 5, axis=1),
        means_=1.5 * np.arange(12.0)[:, None],
        covars_=np.ones((12, 1)),
    )


def short(seed: int) -> Data:
    """Four states, two of one centre and two of another, in sequences of six steps."""
    return drawn(
        GaussianHMM(4),
        80,
        6,
        seed,
        startprob_=np.full(4, 1 / 4),
        transmat_=0.05 + 0.8 * np.eye(4),
        means_=[[0.0, 0.0], [0.0, 0.0], [2.0, 0.0], [2.0, 0.0]],
        covars_=[[0.2, 2.0], [2.0, 0.2], [0.2, 2.0], [2.0, 0.2]],
    )


def shapes(seed: int) -> Data:
    """Three states of one centre and the same variances, which differ in correlations alone."""
    signs = ([1, 1, 1], [1, -1, -1], [-1, 1, -1])
    return drawn(
        GaussianHMM(3, "full"),
        10,
        80,
        seed,
        startprob_=np.full(3, 1 / 3),
        transmat_=0.05 + 0.85 * np.eye(3),
        means_=np.zeros((3, 3)),
        covars_=[0.2 * np.eye(3) + 0.8 * np.outer(sign, sign) for sign in signs],
    )


CASES = {case.__name__: case for case in (learning, widths, circles, many, short, shapes)}


def like(truth: Any, **options: Any) -> Any:
    """An estimator of this package that is to find this truth."""
    if isinstance(truth, GaussianHMM):
        options = {"covariance_type": truth.covariance_type, **options}
    return type(truth)(truth.n_components, **options)


def ours(**options: Any) -> Callable[[Data, int], Any]:
    """A fit of this package."""

    def fit(data: Data, seed: int) -> Any:
        return like(data.truth, random_state=seed, n_jobs=1, **options).fit(data.X, data.lengths)

    return fit


def theirs(make: str, restarts: int) -> Callable[[Data, int], Any]:
    """hmmlearn, the best of some restarts, as a model of this package to be scored alike."""

    def fit(data: Data, seed: int) -> Any:
        bayesian = make.startswith("Variational")
        kind = getattr(bayesian_peer if bayesian else peer, make + type(data.truth).__name__)
        options = {"n_iter": 300, "tol": 1e-2}
        if isinstance(data.truth, GaussianHMM):
            options["covariance_type"] = data.truth.covariance_type
        best, highest = None, -np.inf
        for restart in range(restarts):
            found = kind(data.truth.n_components, random_state=1000 * seed + restart, **options)
            try:
                found.fit(data.X, data.lengths)
                bound = found.monitor_.history[-1]
                score = bound if bayesian else found.score(data.X, data.lengths)
            except (ValueError, IndexError):  # a state died, and its covariance with it
                continue
            if score > highest:
                best, highest = found, score
        if best is None:
            return None
        scored = like(data.truth)
        for name in ("startprob_", "transmat_", "emissionprob_", "means_", "_covars_"):
            source = "means_posterior_" if bayesian and name == "means_" else name
            if hasattr(best, source):
                setattr(scored, name, getattr(best, source))
        return scored

    return fit


def ways() -> dict[str, Callable[[Data, int], Any]]:
    """What is compared."""
    found = {
        "VI, one start": ours(tempering=None, n_init=1),
        "default": ours(),
        "default, one start": ours(n_init=1),
        "T = 2, one start": ours(
            tempering=Annealing(schedules.linear(2.0), fraction=1 / 3), n_init=1
        ),
        "variational tempering, one start": ours(tempering="variational", n_init=1),
        "VI, best of 10": ours(tempering=None, n_init=10),
        "default, best of 10": ours(n_init=10),
    }
    for restarts in (1, 10) if peer is not None else ():
        end = "" if restarts == 1 else ", best of 10"
        found[f"hmmlearn, EM{end}"] = theirs("", restarts)
        found[f"hmmlearn, variational{end}"] = theirs("Variational", restarts)
    return found


def optima(seeds: int, cases: list[str], wanted: str) -> None:
    """How often each way finds what the data were drawn from."""
    for case in cases:
        print(f"\n{case}: {(CASES[case].__doc__ or '').strip()}")
        print(f"{'':32} {'found':>9} {'gap':>8} {'held out':>9} {'ELBO':>9} {'seconds':>8}")
        sets = [CASES[case](seed) for seed in range(seeds)]
        for name, fit in ways().items():
            if wanted not in name:
                continue
            began = time.process_time()
            found = [fit(data, seed) for seed, data in enumerate(sets)]
            seconds = (time.process_time() - began) / seeds
            failed = sum(hmm is None for hmm in found)
            pairs = [(hmm, data) for hmm, data in zip(found, sets) if hmm is not None]
            gaps, new = (
                np.array(
                    [
                        (data.truth.score(rows(data), data.lengths))
                        - hmm.score(rows(data), data.lengths)
                        for hmm, data in pairs
                    ]
                )
                for rows in (lambda data: data.X, lambda data: data.new)
            )
            held_out = -np.mean(new) / len(sets[0].new)
            bounds = [hmm.elbo_ for hmm, _ in pairs if hasattr(hmm, "elbo_")]
            elbo = f"{np.mean(bounds):.1f}" if bounds else "–"
            right = f"{np.sum(gaps < CLOSE)} of {seeds}"
            line = (
                f"{name:32} {right:>9} {gaps.mean():8.1f} {held_out:9.4f} {elbo:>9} {seconds:8.2f}"
            )
            print(line + (f"  ({failed} failed)" if failed else ""), flush=True)


def seconds_ours(k: int, passes: int) -> float:
    """Seconds an iteration of this package, without the start."""
    X, lengths = speed_data()
    options = {"tempering": None, "tol": 0.0, "n_jobs": 1, "random_state": 0, "init": "random"}
    options["n_init"] = 1
    GaussianHMM(k, n_iter=1, **options).fit(X[:400], [200, 200])  # compiles
    times = []
    # The second call is longer than the first by just the passes.
    for n_iter in (1, passes + 1):
        began = time.process_time()
        GaussianHMM(k, n_iter=n_iter, **options).fit(X, lengths)
        times.append(time.process_time() - began)
    return (times[1] - times[0]) / passes


def seconds_theirs(k: int, implementation: str) -> float:
    """Seconds an iteration of hmmlearn, without the start."""
    X, lengths = speed_data()
    hmm = peer.GaussianHMM(  # pyright: ignore[reportOptionalMemberAccess]
        k, n_iter=1, tol=-np.inf, implementation=implementation, random_state=0
    )
    rng = np.random.default_rng(0)
    hmm.startprob_, hmm.transmat_ = np.full(k, 1 / k), np.full((k, k), 1 / k)
    hmm.means_, hmm.covars_ = X[rng.choice(len(X), k)], np.ones((k, 4))
    hmm.init_params = ""
    began = time.process_time()
    hmm.fit(X, lengths)
    return time.process_time() - began


def speed_data() -> tuple[np.ndarray, list[int]]:
    return np.random.default_rng(0).normal(size=(200_000, 4)), [200] * 1000


def timed(way: str, k: int, passes: int) -> None:
    """One measurement, in this process: seconds, and the most memory in MiB."""
    seconds = seconds_ours(k, passes) if way == "ours" else seconds_theirs(k, way)
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def speed(states: list[int], passes: int) -> None:
    """Seconds an iteration and memory of each, in a process of its own."""
    for k in states:
        own = 0.0
        for way in ("ours", "log", "scaling") if peer is not None else ("ours",):
            command = [sys.executable, __file__, "one", "--ways", way, "--states", str(k)]
            command += ["--passes", str(passes)]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            seconds, mebibytes = map(float, out.split()[-2:])
            own = own or seconds
            name = "this package" if way == "ours" else f"hmmlearn ({way})"
            print(
                f"K = {k:2} {name:18} {seconds:7.3f} s {seconds / own:5.1f} x {mebibytes:6.0f} MiB",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["speed", "optima", "one"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--ways", default="", help="only ways with this in their names")
    parser.add_argument("--states", type=int, nargs="+", default=[5, 20, 50])
    parser.add_argument("--passes", type=int, default=5)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    with threadpool_limits(limits=1):
        if asked.what == "speed":
            speed(asked.states, asked.passes)
        elif asked.what == "one":
            timed(asked.ways, asked.states[0], asked.passes)
        else:
            optima(asked.seeds, asked.cases, asked.ways)


if __name__ == "__main__":
    main()
