"""The report of a table: topics over time and by group, of its columns."""

import csv
import json
import re

import numpy as np
import pytest

from tempering.cli import report as report_command
from tempering.cli.report import MOST_GROUPS


@pytest.fixture
def table(files, tmp_path, monkeypatch):
    """Documents of the model as a CSV, each with a day, and a paper that goes with its topics."""
    monkeypatch.setattr(report_command, "N_DRAWS", 4)
    monkeypatch.setattr("tempering.workbench.shares.SETTLING_DRAWS", 1)
    path = tmp_path / "articles.csv"
    words, counts = files.corpus.vocabulary, files.corpus.counts
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "day", "paper", "body"])
        for d in range(counts.shape[0]):
            row = counts[[d]]
            text = " ".join(np.repeat([words[v] for v in row.indices], row.data))
            paper = "" if d < 10 else "Herald" if row.indices[0] < 20 else "Times"
            writer.writerow([f"a{d}", f"{2015 + d % 7}-03-01", paper, text])
    return path


def page_data(path):
    found = re.search(r'id="report-data">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)
    return json.loads(found[1])


def test_columns_become_shares(command, files, table, tmp_path):
    out = tmp_path / "report.html"
    columns = ("--column", "body", "--id", "id", "--times", "day", "--groups", "paper")
    result = command("report", files.model, table, *columns, "--out", out)
    assert "--groups paper: 10 documents have no value" in result.stderr
    data = page_data(out)
    assert data["over_time"]["names"] == [str(year) for year in range(2015, 2022)]
    assert sum(data["over_time"]["documents"]) == 400
    assert data["by_group"]["names"] == ["Herald", "Times"]
    assert sum(data["by_group"]["documents"]) == 390
    # The words a00 to a19 are one topic's.
    heralds = np.array(data["by_group"]["mean"])
    sea = next(
        topic["id"]
        for topic in data["topics"]
        if data["words"]["text"][topic["words"][np.argmax(topic["probabilities"])]][0] == "a"
    )
    assert heralds[sea, 0] > 2 * heralds[sea, 1]
    assert data["facts"]["held_out"] == 20
    assert data["facts"]["documents"] == 380


@pytest.mark.parametrize(
    ("options", "code", "problem"),
    [
        (["--times", "when"], 1, "no column 'when'"),
        (["--times", "paper"], 2, "--times paper: .*'(Times|Herald)' is neither"),
        (["--times", "day", "--bins", "decade"], 2, "'decade' is neither a whole number"),
    ],
)
def test_what_a_table_has_not_is_named(command, files, table, tmp_path, options, code, problem):
    place = ("--column", "body", "--out", tmp_path / "r.html")
    result = command("report", files.model, table, *place, *options, code=code)
    assert re.search(problem, " ".join(result.stderr.replace("│", " ").split()))


def test_counts_have_no_columns(command, files, tmp_path):
    out = ("--out", tmp_path / "r.html")
    result = command("report", files.model, files.counts, "--groups", "paper", *out, code=2)
    assert "holds counts" in result.stderr
    result = command("report", files.model, "--groups", "paper", *out, code=2)
    assert "name the corpus after the model" in " ".join(result.stderr.replace("│", " ").split())


def test_small_groups_are_one(capsys):
    values = [name for i in range(MOST_GROUPS + 5) for name in [f"g{i:02d}"] * (100 - i)]
    groups = report_command.as_groups(values)
    assert len(set(groups)) == MOST_GROUPS
    assert groups.count(report_command.OTHERS) == sum(100 - i for i in range(MOST_GROUPS - 1, 25))
    assert "25 groups" in capsys.readouterr().err
