"""Temperature policies, most of them with a setting that nobody should give."""

from __future__ import annotations

from typing import Any

import numpy as np

import tempering

#: What a message about a policy may name.
POLICY_WORDS = ("temperature", "policy", "schedule", "fraction", "passes", "prior", "formula")
POLICY_WORDS += ("damping", "alternations", "tolerance", "every", "n_samples", "temper", "start")
POLICY_WORDS += ("TemperaturePolicy", "pace", "rest", "push")


def policies() -> dict[str, Any]:
    """How each is made; some cannot be made at all."""
    annealing, local = tempering.Annealing, tempering.LocalTempering
    variational, schedules = tempering.VariationalTempering, tempering.schedules
    return {
        "untempered": tempering.Untempered,
        "a bare policy": tempering.TemperaturePolicy,
        "a class": lambda: annealing,
        "a bare schedule": lambda: schedules.linear(5.0),
        "annealing": lambda: annealing(schedules.linear(5.0)),
        "annealing below 1": lambda: annealing(schedules.linear(0.5)),
        "annealing at 0": lambda: annealing(schedules.constant(0.0)),
        "annealing at -1": lambda: annealing(schedules.constant(-1.0)),
        "annealing at NaN": lambda: annealing(schedules.constant(np.nan)),
        "annealing at infinity": lambda: annealing(schedules.constant(np.inf)),
        "annealing at 1e300": lambda: annealing(schedules.constant(1e300)),
        "annealing by text": lambda: annealing(lambda progress: "hot"),
        "annealing by None": lambda: annealing(lambda progress: None),
        "annealing by an array": lambda: annealing(lambda progress: np.ones(3)),
        "annealing by a number": lambda: annealing(3.0),
        "annealing by a function of nothing": lambda: annealing(lambda: 3.0),
        "annealing by a function of two": lambda: annealing(lambda progress, other: 3.0),
        "annealing from its own start by a function of nothing": lambda: annealing(
            lambda: schedules.linear(3.0), start="auto"
        ),
        "annealing from its own start by what makes a function of nothing": lambda: annealing(
            lambda first: lambda: 3.0, start="auto"
        ),
        "annealing of a part of 0": lambda: annealing(fraction=0.0),
        "annealing of a part of 2": lambda: annealing(fraction=2.0),
        "annealing of a part of NaN": lambda: annealing(fraction=np.nan),
        "annealing for -1 passes": lambda: annealing(passes=-1),
        "annealing for NaN passes": lambda: annealing(passes=np.nan),
        "annealing of nothing known": lambda: annealing(temper="odd"),
        "annealing of all": lambda: annealing(temper="joint"),
        "annealing from an unknown start": lambda: annealing(start="odd"),
        "annealing from its own start": lambda: annealing(start="auto"),
        **{
            f"{policy.__name__} {name}={value!r}": lambda p=policy, n=name, v=value: p(**{n: v})
            for policy in (local, variational)
            for name, value in (
                ("inverse_temperatures", []),
                ("inverse_temperatures", [1.0]),
                ("inverse_temperatures", [0.0, 1.0]),
                ("inverse_temperatures", [np.nan, 1.0]),
                ("inverse_temperatures", [-1.0, 1.0]),
                ("inverse_temperatures", [2.0, 1.0]),
                ("inverse_temperatures", "odd"),
                ("inverse_temperatures", [[0.5, 1.0]]),
                ("inverse_temperatures", None),
                ("prior", []),
                ("prior", [0.5, 0.5]),
                ("prior", "odd"),
                ("prior", [np.nan] * 100),
                ("formula", "odd"),
                ("formula", None),
                ("damping", -1),
                ("damping", 1.0),
                ("damping", np.nan),
                ("damping", "odd"),
                ("fraction", 0.0),
                ("fraction", None),
                ("fraction", 5),
            )
        },
        **{
            f"AdaptiveTempering {name}={value!r}": lambda n=name, v=value: (
                tempering.AdaptiveTempering(**{n: v})
            )
            for name in ("pace", "rest", "push", "fraction")
            for value in (0, -1, 2.0, np.nan, np.inf, 1e-300, 1e300, "odd", None, [], [0.1], True)
        },
        "LocalTempering max_alternations=0": lambda: local(max_alternations=0),
        "LocalTempering max_alternations=1.5": lambda: local(max_alternations=1.5),
        "LocalTempering tolerance=nan": lambda: local(tolerance=np.nan),
        "LocalTempering tolerance=-1": lambda: local(tolerance=-1),
        "VariationalTempering every=0": lambda: variational(every=0),
        "VariationalTempering every='odd'": lambda: variational(every="odd"),
        "VariationalTempering n_samples=0": lambda: variational(n_samples=0),
        "VariationalTempering n_samples=1": lambda: variational(n_samples=1),
        "VariationalTempering n_samples=nan": lambda: variational(n_samples=np.nan),
    }
