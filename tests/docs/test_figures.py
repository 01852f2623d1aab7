"""Figures on the pages are those of the runs that are kept in lab/results."""

import json
from collections import defaultdict
from pathlib import Path
from statistics import mean

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "lab" / "results"

CORPORA = {"arxiv": "arXiv, 20,000 documents", "20news": "20 Newsgroups"}

#: What the page calls a target.
TARGETS = {
    "clusters in 2-D": "mixture, 2-D",
    "clusters in 10-D": "mixture, 10-D",
    "neural net": "network",
    "growth curves, bad start": "growth curves",
    "logistic regression": "logistic",
}
METHODS = ["plain", "adaptive", "2 x steps", "8 x steps/4"]
LIKELIHOOD = ["linear, s 0.1 to 1", "geometric, s 0.01 to 1"]
KL = [f"KL weight 0 to 1, {part}%" for part in (25, 50, 75)]


def lines(name):
    return [json.loads(line) for line in (RESULTS / name).read_text("utf-8").splitlines()]


def number(value, digits):
    return f"{value:.{digits}f}".replace("-", "−")


def table(page, first):
    """Rows of the table whose first line holds this text, by their first cell."""
    text = (ROOT / page).read_text("utf-8")
    block = text[text.index(first) :].split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in block]
    return {row[0]: row[1:] for row in cells}


def topics():
    runs = defaultdict(list)
    for run in lines("topics.jsonl"):
        runs[run["corpus"], run["K"]].append(run)
    return runs


@pytest.mark.parametrize(("corpus", "k"), sorted(topics()))
def test_topics_on_the_page_are_those_of_the_runs(corpus, k):
    runs = topics()[corpus, k]
    score, npmi, seconds = (mean(run[name] for run in runs) for name in ("gibbs", "npmi", "cpu s"))
    row = table("docs/measured.md", "| | `tempering`, nothing set |")[f"{CORPORA[corpus]}, K = {k}"]
    assert row[0] == f"**{number(score, 3)}**, {npmi:.3f}, **{seconds:.0f} s**"
    agreement = mean(run["stability"] for run in runs if run["stability"] is not None)
    assert row[-1].startswith(f"{agreement:.2f},")


def test_topics_in_the_readme_are_those_of_the_page():
    ours, tomotopy, sklearn, agreement = table("docs/measured.md", "| | `tempering`, nothing set")[
        "arXiv, 20,000 documents, K = 50"
    ]

    def short(cell):
        score, _, seconds = cell.split(", ")
        return f"{score} ({seconds.strip('*').removesuffix(' s')})"

    readme = table("README.md", "| what | `tempering` | others | command |")
    scores = readme["50 topics, 20,000 arXiv abstracts: held-out nats a word (CPU seconds)"]
    assert scores[0] == short(ours)
    assert scores[1] == f"tomotopy {short(tomotopy)}, scikit-learn {short(sklearn)}"
    agree = readme["the same: how far the topics of two seeds agree (cosine)"]
    own, second, third = agreement.split(", ")
    assert agree[:2] == [f"**{own}**", f"tomotopy {second}, scikit-learn {third}"]


def test_black_box_targets_on_the_page_are_those_of_the_runs():
    means = {
        (run["target"], run["method"]): mean(run["elbos"])
        for run in lines("black-box.jsonl")
        if None not in run["elbos"]
    }
    rows = table("docs/blackbox.md", "| | plain SVI | adaptive |")
    assert len(rows) == 10
    for name, cells in rows.items():
        target = TARGETS.get(name, name)
        expected = [means[target, method] for method in METHODS]
        expected += [max(means[target, method] for method in grid) for grid in (LIKELIHOOD, KL)]
        assert cells == [number(value, 1) for value in expected], name


def test_gpu_fits_of_topics_on_the_page_are_those_of_the_runs():
    runs = lines("gpu.jsonl")
    text = (ROOT / "docs" / "performance.md").read_text("utf-8")
    for run in runs:
        cells = [str(run[name]) for name in ("topics", "where", "seconds", "documents a second")]
        assert f"| {' | '.join(cells)} | {number(run['nats'], 3)} |" in text
    assert len(table("docs/performance.md", "| topics | where |")) == len(
        {r["topics"] for r in runs}
    )


def test_gpu_fits_of_mixtures_on_the_page_are_those_of_the_runs():
    rows = table("docs/tutorials/gpu.md", "| model | rows |")
    assert rows == {
        run["model"]: [f"{run['rows']:,}", str(run["16 cores"]), str(run["H200"])]
        for run in lines("gpu-tables.jsonl")
    }


def test_steps_of_a_cluster_on_the_page_are_those_of_the_runs():
    rows = table("docs/scaling.md", "| | tempered: s a step, median |")
    assert rows == {
        run["where"]: [f"{run['tempered']:.3f}", f"{run['T = 1']:.3f}"]
        for run in lines("cluster.jsonl")
    }


@pytest.mark.parametrize("run", lines("topics-large.jsonl"), ids=lambda run: str(run["K"]))
def test_scores_of_large_corpora_on_the_page_are_those_of_the_runs(run):
    rows = table("docs/measured.md", "| | `tempering`, nothing set |")
    cell = rows[f"{run['corpus']}, K = {run['K']}"][0]
    assert cell.startswith(f"**{number(run['gibbs'], 3)}**,")


#: Runs that are not kept themselves, and the page that shows their figures.
WRITTEN_DOWN = [
    (run, page)
    for page, names in {
        "docs/measured.md": ("topics-large", "hmm", "hmm-speed", "counts"),
        "docs/performance.md": ("gpu", "gpu-curve"),
        "docs/scaling.md": ("cluster",),
        "docs/tutorials/gpu.md": ("gpu-tables",),
    }.items()
    for name in names
    for run in lines(f"{name}.jsonl")
]


@pytest.mark.parametrize(("run", "page"), WRITTEN_DOWN, ids=str)
def test_figures_that_were_written_down_stand_in_their_entry(run, page):
    """Their figures are those of a dated entry of the lab, and their command is on the page."""
    entry = (ROOT / "lab" / run["entry"]).read_text("utf-8")
    numbers = [value for value in run.values() if isinstance(value, float)]
    wanted = [str(value).replace("-", "−") for value in numbers]
    assert any(all(cell in line for cell in wanted) for line in entry.splitlines())
    assert run["command"] in (ROOT / page).read_text("utf-8")


def test_topics_of_other_programs_on_the_page_are_those_that_were_kept():
    rows = table("docs/measured.md", "| | `tempering`, nothing set |")
    columns = ["tempering", "tomotopy", "scikit-learn, online"]
    for run in lines("topics-others.jsonl"):
        row, column = rows[f"{run['corpus']}, K = {run['K']}"], columns.index(run["program"])
        cell = f"{number(run['nats'], 3)}, {number(run['npmi'], 3)}, {run['cpu s']} s"
        assert row[column].replace("*", "") == cell
        assert row[-1].split(", ")[column] == f"{run['agreement']:.2f}"


def hidden_markov_models():
    runs = defaultdict(dict)
    for run in lines("hmm.jsonl"):
        runs[run["program"]][run["case"]] = run
    return runs


def test_hidden_markov_models_on_the_page_are_those_of_the_entry():
    first = "| | shapes | short | many | widths |"
    rows, runs = table("docs/measured.md", first), hidden_markov_models()
    assert {name.replace("`", "").split(", 14 times")[0] for name in rows} == set(runs)
    for name, cells in rows.items():
        own = runs[name.replace("`", "").split(", 14 times")[0]]
        cases = [own[case] for case in ("shapes", "short", "many", "widths")]
        assert cells == [f"{run['found']} ({number(run['nats'], 3)})" for run in cases]


def test_cells_of_hidden_markov_models_stand_in_their_entry():
    for run in lines("hmm.jsonl"):
        figures = f"{number(run['gap'], 1)}; {number(run['nats'], 3)}; {run['seconds']:.1f}"
        cell = f"{run['found']} ({figures})"
        assert cell in (ROOT / "lab" / run["entry"]).read_text("utf-8")


def test_sums_over_hidden_markov_models_on_the_pages_are_those_of_the_runs():
    def total(program, name):
        return sum(run[name] for run in hidden_markov_models()[program].values())

    ours, ten = "tempering, nothing set (three starts)", "hmmlearn, EM, best of ten"
    times = total(ten, "seconds") / total(ours, "seconds")
    measured = (ROOT / "docs" / "measured.md").read_text("utf-8")
    assert f"| {ten}, {times:.0f} times the time |" in measured
    guide = " ".join((ROOT / "docs/tutorials/hidden-markov.md").read_text("utf-8").split())
    assert f"a fit found the truth in {total(ours, 'found')}" in guide
    assert f"one of hmmlearn's `GaussianHMM` in {total('hmmlearn, EM', 'found')}" in guide
    assert f"in {times:.0f} times our time" in guide
    assert f"dynamax's EM found {total('dynamax, EM', 'found')}" in guide


def test_speed_of_hidden_markov_models_on_the_page_is_that_of_the_entry():
    runs = lines("hmm-speed.jsonl")

    def listed(name, digits):
        *rest, last = [f"{run[name]:.{digits}f}" for run in runs]
        return f"{', '.join(rest)} and {last}"

    page = " ".join((ROOT / "docs" / "measured.md").read_text("utf-8").split())
    assert f"takes {listed('seconds', 3)} s on one core with {listed('states', 0)} states" in page
    assert f"That is {listed('times as fast', 1)} times as fast" in page


def test_parts_of_counts_on_the_page_are_those_of_the_entry():
    rows = table("docs/measured.md", "| | drawn, 6 parts |")
    cases = ["drawn, 6 parts", "digits, 10 parts", "20news, 20 parts"]
    runs = lines("counts.jsonl")
    assert len(runs) == len(rows) * len(cases)
    best = {case: max(run["nats"] for run in runs if run["case"] == case) for case in cases}
    shown = {name.replace("`", ""): cells for name, cells in rows.items()}
    for run in runs:
        score, bold = number(run["nats"], 4), run["nats"] == best[run["case"]]
        cell = f"**{score}**" if bold else score
        assert shown[run["program"]][cases.index(run["case"])] == f"{cell} ({run['seconds']})"


def test_what_more_documents_buy_on_the_page_is_that_of_the_entry():
    rows = table("docs/performance.md", "| documents | fit, s, with the start |")
    assert rows == {
        run["documents"]: [
            f"{run['seconds']:.0f}" if "seconds" in run else "",
            number(run["nats"], 3),
            f"{run['agreement']:.2g}" if "agreement" in run else "",
        ]
        for run in lines("gpu-curve.jsonl")
    }


def test_speeds_on_the_page_are_those_of_the_runs():
    rows = table("docs/measured.md", "| | K = 50 | K = 200 | K = 500 |")
    runs = defaultdict(list)
    for run in lines("speed.jsonl"):
        runs[run["program"]].append(run)
    assert rows["`tempering`, nothing set"] == [
        f"{run['docs/s']:,}" for run in runs["tempering, defaults"]
    ]
    ours = runs["tempering, T = 1"]
    assert rows["`tempering`, T = 1"] == [f"{run['docs/s']:,}" for run in ours]
    for peer, ratio in (("scikit-learn", "x sklearn"), ("gensim", "x gensim")):
        assert rows[peer] == [
            f"{theirs['docs/s']:,} ({mine[ratio]:.1f}x)"
            for theirs, mine in zip(runs[peer], ours, strict=True)
        ]


def test_a_changed_import_on_the_page_is_that_of_the_run():
    rows = table("docs/measured.md", "| | wall s | CPU s |")
    for run in lines("drop-in.jsonl"):
        ratios = {name: f" ({run[name]:.1f}x)" for name in ("x wall", "x CPU")}
        if run["program"] == "scikit-learn":
            ratios = dict.fromkeys(ratios, "")
        wall, processor = f"{run['wall, s']:.1f}", f"{run['CPU s']:.1f}"
        cells = [wall + ratios["x wall"], processor + ratios["x CPU"], number(run["held-out"], 3)]
        assert rows[run["program"].replace("tempering", "`tempering`")] == cells


def test_the_other_rows_of_the_readme_are_those_of_the_page():
    readme = table("README.md", "| what | `tempering` | others | command |")
    speed = table("docs/measured.md", "| | K = 50 | K = 200 | K = 500 |")
    ours, others = readme["documents a CPU second, 50 topics, T = 1"][:2]
    assert ours == f"**{speed['`tempering`, T = 1'][0]}**"
    peers = [f"{name} {speed[name][0].split()[0]}" for name in ("scikit-learn", "gensim")]
    assert others == ", ".join(peers)


def test_factor_analysis_on_the_page_is_that_of_the_runs():
    rows = table("docs/tutorials/factor-models.md", "| | ELBO below the best |")
    assert {name.strip("`"): cells for name, cells in rows.items()} == {
        run["method"]: [
            *(f"{run[n]:.1f}" if n in run else "" for n in ("ELBO below the best", "factors")),
            number(run["nats"], 2),
        ]
        for run in lines("factor-analysis.jsonl")
    }


def test_mixtures_of_regressions_on_the_page_are_those_of_the_runs():
    gaps = defaultdict(list)
    for run in lines("regressions.jsonl"):
        gaps[run["method"]].append(run["mean gap"])
    alone = ("VI", "from T = 1.5", "auto, best of 4")
    one, warm, warm_four = (mean(gaps[name]) for name in alone)
    page = " ".join((ROOT / "docs/tutorials/factor-models.md").read_text("utf-8").split())
    assert f"One run that cools from T = 1.5 gains {one - warm:.1f} nats" in page
    assert f"the best of four of them {one - warm_four:.1f} in" in page
