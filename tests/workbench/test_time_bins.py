"""Bins of time: what holds each document, and what it is called."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas
import pytest

from tempering.workbench.time_bins import as_times, time_bins


def dates(first, n, step):
    return np.datetime64(first) + step * np.arange(n)


def starts(times, bins):
    names, places = time_bins(times, bins, len(times))
    for time, place in zip(times, places):
        start, end = names[place]
        assert start <= time <= end
    return [str(start) for start, _ in names]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (dates("2015-03-01", 80, 30), [str(year) for year in range(2015, 2022)]),
        (
            dates("2020-11-20", 40, 5),
            [f"202{m}" for m in ["0-11", "0-12", "1-01", "1-02", "1-03", "1-04", "1-05", "1-06"]],
        ),
        (
            dates("2020-02-27", 5, 1),
            [f"2020-{d}" for d in ["02-27", "02-28", "02-29", "03-01", "03-02"]],
        ),
        (
            dates("2020-01-01T23:30", 70, np.timedelta64(1, "D")),
            [
                f"2020-{d}"
                for d in [
                    "01-01",
                    "01-07",
                    "01-13",
                    "01-19",
                    "01-25",
                    "01-31",
                    "02-06",
                    "02-12",
                    "02-18",
                    "02-24",
                    "03-01",
                    "03-07",
                ]
            ],
        ),
        (np.array([1990, 1992, 1997]), ["1990", "1992", "1997"]),
        (np.array([1990.0, 1992.0, 1997.0]), ["1990", "1992", "1997"]),
    ],
)
def test_bins_are_those_of_the_calendar(times, expected):
    assert starts(times, "auto") == expected


def test_bins_can_be_named():
    times = dates("2019-12-30", 4, 1)
    assert starts(times, "year") == ["2019", "2020"]
    assert starts(times, "month") == ["2019-12", "2020-01"]
    assert len(starts(times, "day")) == 4
    assert len(starts(np.arange(1000), "auto")) == 12


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1990", " 1992 "], np.array([1990, 1992])),
        ([1.5, 2], np.array([1.5, 2.0])),
        ([date(2020, 1, 2)], np.array(["2020-01-02"], "datetime64[s]")),
        (["2020-01-02T01:00+02:00"], np.array(["2020-01-01T23:00"], "datetime64[s]")),
        (["20200131", " 20200201"], np.array(["2020-01-31", "2020-02-01"], "M8[s]")),
        (["20200131", "20201301"], np.array([20200131, 20201301])),
        (["2020-02", "2019"], np.array(["2020-02-01", "2019-01-01"], "M8[s]")),
        (["2020-02", "2020-01-02 10:30"], np.array(["2020-02-01", "2020-01-02T10:30"], "M8[s]")),
        (
            [datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=-1))), datetime(2020, 1, 1)],
            np.array(["2020-01-01T01:00", "2020-01-01"], "M8[s]"),
        ),
        (pandas.Series(["2020-01", "2021-12"]), np.array(["2020-01-01", "2021-12-01"], "M8[s]")),
        (
            pandas.to_datetime(pandas.Series(["2020-01-02"])).dt.tz_localize("UTC"),
            np.array(["2020-01-02"], "M8[s]"),
        ),
        (list(pandas.to_datetime(["2020-01-02"])), np.array(["2020-01-02"], "M8[s]")),
        ([datetime(2020, 1, 1, tzinfo=UTC)], np.array(["2020-01-01"], "M8[s]")),
    ],
)
def test_times_as_tables_have_them(values, expected):
    np.testing.assert_array_equal(as_times(values), expected)


@pytest.mark.parametrize(
    "edges",
    [
        ["2020-01-01", "2020-06-01", "2022-01-01"],
        [date(2020, 1, 1), date(2020, 6, 1), date(2022, 1, 1)],
        pandas.to_datetime(["2020-01-01", "2020-06-01", "2022-01-01"]).tz_localize("UTC"),
    ],
)
def test_edges_may_be_dates_as_times_are(edges):
    times = [date(2020, 1, 1), date(2020, 6, 1), date(2021, 1, 1)]
    assert time_bins(times, edges, 3)[1].tolist() == [0, 1, 1]


@pytest.mark.parametrize("unit", ["i8", "u1", "M8[Y]", "M8[D]"])
@pytest.mark.parametrize(("n_times", "n_bins"), [(2, 2), (3, 2), (3, 3), (7, 3), (10, 4), (100, 7)])
def test_bins_of_one_length_hold_the_times_that_lie_in_them(unit, n_times, n_bins):
    """Also where an edge lies between two years: rounded down, it would be another bin's."""
    whole = np.arange(n_times)
    times = whole.astype(unit) if "M" not in unit else np.datetime64("2020", unit[3]) + whole
    expected = np.minimum(whole * n_bins // (n_times - 1), n_bins - 1)
    names, places = time_bins(times, n_bins, n_times)
    assert places.tolist() == expected.tolist()
    assert len(names) == n_bins
    assert names[0][0] == times[0]
    assert names[-1][1] == times[-1]


def test_small_numbers_far_apart_have_bins():
    times = np.array([-100, 0, 100], np.int8)
    assert time_bins(times, 2, 3)[0] == [(-100, 0), (0, 100)]
    assert len(time_bins(np.arange(-100, 101, dtype=np.int8), "auto", 201)[0]) == 12


@pytest.mark.parametrize(
    ("times", "bins", "problem"),
    [
        (["31/01/2024"], 1, "dates, but '31/01/2024' is neither: begin with the year"),
        (["9" * 400], 1, "is neither"),
        (["2024_01", "2024_02"], 1, "'2024_01' is neither: begin with the year"),
        (["nan"], 1, "'nan' is neither"),
        ([1.0, np.inf], 2, "times must be finite; got inf"),
        (["0001-01-01T00:00+05:00"], 1, "is neither"),
        (np.arange(3), True, "bins must be a whole number from 1 to 1000000, or edges; got True"),
        (np.arange(3), "year", "bins='year' is for dates, but times are numbers"),
        (np.arange(3), "decade", "'auto', 'year', 'month', 'day'; got 'decade'"),
        (np.array(["0001-01-01", "9999-01-01"], "datetime64[D]"), "day", "more than 1000000"),
    ],
)
def test_what_cannot_be_is_named(times, bins, problem):
    with pytest.raises(ValueError, match=problem):
        time_bins(times, bins, len(times))
