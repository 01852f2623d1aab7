"""Clusters separate one after the other.

Eight clusters on a line, and a mixture of eight that cools very slowly. Each line is a mean. At a
high temperature all are equal. Each fork is a temperature at which components separate, wide gaps
first and narrow ones last. A schedule that is too fast at a fork takes a wrong turn there.
"""

import sys

import numpy as np
from matplotlib.figure import Figure

from tempering import Annealing, Mixture, fit, schedules
from tempering.families import Dirichlet, IsotropicGaussian

rng = np.random.default_rng(0)
centres = np.array([-12.0, -10.0, -4.0, -3.0, 3.0, 5.0, 10.0, 13.0])
data = rng.normal(np.repeat(centres, 100), 0.3)[:, None]
likelihood = IsotropicGaussian(1, 0.09)
prior = likelihood.conjugate.natural(np.zeros(1), 400.0)
model = Mixture(likelihood, Dirichlet(8), np.ones(8), prior)
path = []


def note(report):
    means = likelihood.conjugate.point(report.posterior.components).ravel()
    path.append((report.record.temperature, *means))
    # A little noise, so that what is alike can separate.
    noise = 1 + 1e-3 * rng.normal(size=len(means))
    report.posterior.components[:, 0] *= noise


cooling = Annealing(schedules.geometric(2000.0), passes=1500)
fit(model, data, temperature=cooling, max_passes=1520, callbacks=[note], seed=0, progress=False)
path = np.array(path)
figure = Figure(figsize=(8, 4.5), layout="constrained")
axis = figure.subplots()
axis.plot(path[:, 0], path[:, 1:], lw=2)
axis.plot(np.full(8, 0.8), centres, "k>", clip_on=False)
axis.set(xscale="log", xlim=(2000, 0.8), xlabel="temperature, falling", ylabel="means")
axis.set_title("true centres: triangles on the right", fontsize="medium", loc="left")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "splits.png", dpi=100)
