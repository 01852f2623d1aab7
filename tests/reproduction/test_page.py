"""The page holds every figure and verdict, and needs nothing that is not in it."""

import re
from pathlib import Path

import numpy as np
import pytest

from reproduction import EXPERIMENTS
from reproduction.experiment import Claim, Experiment, Setting
from reproduction.page import Finished, figures_of, shrink, write_page


def finished(name, sentences, setting=None, data="corpus.npz"):
    claims = [
        Claim(name, sentence, "40 seeds", "1 < 2 | 3 & p = 0.01", verdict, "the rule", added)
        for sentence, verdict, added in sentences
    ]
    experiment = Experiment(
        name, f"Title of {name}", "What is <said>.", list, dict, print, lambda rows: claims
    )
    rows = [{"data": data, "seconds": 61.4, "cpu": 60.0, "machine": "a machine"}] * 20
    return Finished(experiment, setting or Setting(), rows, claims)


def picture(path):
    from tempering.plots.canvas import new_figure

    figure = new_figure(figsize=(2, 2))
    figure.subplots().imshow(np.random.default_rng(0).random((30, 30)))
    figure.savefig(path, dpi=80)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    for name in ("toy.png", "toy_features.png", "lda.png", "lda-topics.png"):
        picture(folder / name)
    setting = Setting("full", 40, (Path("/some/where/corpus.npz"),), Path("/some/where/faces.npz"))
    results = [
        finished("lda", [("<b>SVI</b> is slow", "does not hold", False)], setting),
        finished("faces", [("faces", "holds", True)], setting, "faces.npz"),
        finished("lda-topics", [("more topics", "holds in part", False)]),
        finished("toy", [("VT is better", "holds", False), ("Added: moves", "holds", True)]),
    ]
    write_page(results, folder)
    return folder


def test_the_markdown_finds_its_figures(page):
    text = (page / "reproduction.md").read_text()
    links = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert len(links) == 4
    assert all((page / link).exists() for link in links)
    assert "1 hold, 1 hold in part, 1 do not hold" in text
    assert "2 hold, 0 hold in part, 0 do not hold" in text
    # A bar would end a cell.
    assert "2 \\| 3" in text
    tables = [line for line in text.splitlines() if line.startswith("| ")]
    overview, details = (
        [line for line in tables if ("ours |" in line or "paper |" in line) == first]
        for first in (True, False)
    )
    assert {line.replace("\\|", "").count("|") for line in overview} == {6}
    assert [line.count("ours") for line in overview] == [0, 1, 0, 0, 1]
    assert {line.replace("\\|", "").count("|") for line in details if "whose" not in line} == {5}


def test_the_command_names_files_and_no_folders(page):
    text = (page / "reproduction.md").read_text()
    assert "/some/where" not in text
    start = "    python -m reproduction"
    assert f"{start} lda --scale full --seeds 40 --corpus corpus.npz" in text
    assert f"{start} faces --scale full --seeds 40 --faces faces.npz" in text
    assert "20 runs, 1,228 s wall clock, 1,200 s CPU; a machine." in text


def test_figures_belong_to_the_longest_name(page):
    names = {name: [path.name for path in figures_of(name, page)] for name in EXPERIMENTS}
    assert names["lda"] == ["lda.png"]
    assert names["lda-topics"] == ["lda-topics.png"]
    assert names["toy"] == ["toy.png", "toy_features.png"]


def test_a_smaller_picture_is_the_same_picture(page):
    from PIL import Image

    shrink(page / "toy.png", page / "small.png")
    assert (page / "small.png").stat().st_size < (page / "toy.png").stat().st_size
    before, after = (
        np.asarray(Image.open(page / name).convert("RGB"), float)
        for name in ("toy.png", "small.png")
    )
    assert before.shape == after.shape
    assert np.abs(before - after).mean() < 4
