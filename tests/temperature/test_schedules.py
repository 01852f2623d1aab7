"""Schedules are plain functions of progress."""

import numpy as np
import pytest

from tempering.temperature import schedules


@pytest.mark.parametrize(
    "schedule", [schedules.linear(20.0), schedules.linear_inverse(20.0), schedules.geometric(20.0)]
)
def test_they_run_from_start_to_one_and_fall(schedule):
    temperatures = [schedule(u) for u in np.linspace(0, 1, 50)]
    assert temperatures[0] == pytest.approx(20.0)
    assert temperatures[-1] == pytest.approx(1.0)
    assert np.all(np.diff(temperatures) < 0)


def test_each_is_even_in_its_own_scale():
    u = np.linspace(0, 1, 11)
    scales = {schedules.linear: np.array, schedules.linear_inverse: np.reciprocal}
    scales[schedules.geometric] = np.log
    for make, scale in scales.items():
        np.testing.assert_allclose(np.diff(scale([make(20.0)(v) for v in u]), n=2), 0, atol=1e-12)


def test_join_gives_each_its_own_progress():
    joined = schedules.join(
        [schedules.linear(10.0, 4.0), schedules.constant(4.0), schedules.linear(4.0)], [0.2, 0.6]
    )
    assert joined(0.0) == 10.0
    assert joined(0.1) == pytest.approx(7.0)
    assert joined(0.2) == 4.0
    assert joined(0.8) == pytest.approx(2.5)
    assert joined(1.0) == pytest.approx(1.0)


@pytest.mark.parametrize("boundaries", [[], [0.7, 0.3], [1.0, 2.0]])
def test_join_refuses_wrong_boundaries(boundaries):
    parts = [schedules.constant(1.0)] * 3
    with pytest.raises(ValueError, match="rising boundaries"):
        schedules.join(parts, boundaries)


def test_join_refuses_what_is_no_function_of_progress():
    with pytest.raises(ValueError, match="schedules must be functions of progress"):
        schedules.join([schedules.constant(2.0), lambda: 1.0], [0.5])


def test_one_boundary_may_stand_alone():
    parts = [schedules.constant(8.0), schedules.linear(8.0)]
    assert schedules.join(parts, 0.5)(0.75) == schedules.join(parts, [0.5])(0.75) == 4.5


@pytest.mark.parametrize("value", [0.5, -1.0, np.nan, np.inf, "odd", None, [2.0]])
@pytest.mark.parametrize("name", ["constant", "linear", "linear_inverse", "geometric"])
def test_what_is_no_temperature_is_refused_where_it_is_given(name, value):
    with pytest.raises(ValueError, match=r"(start|temperature) must be >= 1 and finite"):
        getattr(schedules, name)(value)


@pytest.mark.parametrize("arguments", [([1.0, 2.0], [0.5]), (None, []), ("ab", [0.5])])
def test_only_schedules_can_be_joined(arguments):
    with pytest.raises(ValueError, match="schedules must be functions"):
        schedules.join(*arguments)
