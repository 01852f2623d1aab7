"""Figure 2 in small; the settings of its methods, and the rules of its verdicts."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from pictures import drawn
from reproduction import lda
from reproduction.experiment import Setting
from reproduction.lda_claims import AVI, claims, passes_above
from reproduction.lda_corpora import HELD_OUT, count_documents, load_documents
from reproduction.lda_fits import (
    DAMPED_VT,
    DEFAULT,
    PAPER_START,
    PRINTED_VT,
    QUICK_RUN,
    Run,
    ScoreCurve,
    fit_topics,
    mean_field_score,
    policy_of,
)
from reproduction.runner import plain, run_experiment
from tempering.evaluation import split_documents


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    out = tmp_path_factory.mktemp("lda")
    return out, run_experiment(lda.EXPERIMENT, Setting(seeds=1), out)


def test_the_quick_form_runs_draws_and_judges(quick):
    out, rows = quick
    assert {row["method"] for row in rows} == {*lda.METHODS, *lda.VARIANTS}
    assert drawn(out / "lda.png")
    judged = json.loads((out / "lda.json").read_text())["claims"]
    assert len(judged) == len(claims(rows)) >= 8
    assert all("nan" not in claim["numbers"] for claim in judged)
    for row in rows:
        assert row["visits"][-1] == row["documents_seen"] == row["passes"] * row["documents"]
        assert np.all(np.diff(row["visits"]) > 0)
        assert row["scores"][-1] == row["vi"]


def test_the_printed_formula_ends_at_the_highest_temperature(quick):
    _, rows = quick
    ends = {row["method"]: row["last_temperature"] for row in rows}
    assert ends[PRINTED_VT] == pytest.approx(10.0, abs=0.01)
    assert ends["VT"] < 2
    assert ends["SVI"] == ends[AVI[2]] == ends[DAMPED_VT] == 1.0


def test_the_same_seed_gives_the_same_numbers(quick):
    _, rows = quick
    row = next(row for row in rows if row["method"] == "LVT")
    case = {name: row[name] for name in lda.cases(Setting(seeds=1))[0]}
    again = plain(lda.run_case(case, Setting()))
    assert {name: row[name] for name in again} == again


def test_annealing_starts_where_the_paper_says(quick):
    """In the mean of 100 temperatures from 1 to 10 on an exponential scale."""
    _, rows = quick
    first = {row["method"]: row["first_temperature"] for row in rows}
    assert first[AVI[1]] == pytest.approx(PAPER_START, abs=1e-3)
    assert np.mean(10 ** np.linspace(0, 1, 100)) == pytest.approx(PAPER_START)


def test_q_of_y_is_uniform_until_the_first_update():
    documents = load_documents(lda.cases(Setting(seeds=1))[0], Setting())
    history = fit_topics(documents.train, 5, policy_of("VT", 7), 0, Run(0.5, 20, 16.0)).history
    uniform = 1 / np.mean(10 ** -np.linspace(0, 1, 100))
    np.testing.assert_allclose(history["temperature"][:7], uniform)
    assert history["temperature"][7] != pytest.approx(uniform, rel=1e-3)


@given(passes=st.floats(0.5, 50), documents=st.integers(100, 10**6))
def test_there_are_updates_of_the_temperature_enough(passes, documents):
    run = Run(passes)
    every, steps = run.every(documents), run.steps(documents)
    assert 1 <= every <= 1000
    assert every == 1000 or every == 1 or steps / every >= 20


def test_scores_along_a_run_are_those_of_its_topics():
    documents = load_documents(lda.cases(Setting(seeds=1))[0], Setting())
    curve = ScoreCurve(documents.split, 5, QUICK_RUN.passes * documents.train.shape[0], 3)
    fitted = fit_topics(documents.train, 5, policy_of("SVI", 1), 3, QUICK_RUN, callback=curve)
    assert len(curve.scores) == 3
    end = mean_field_score(documents.split, fitted.topics, 1 / 5)
    assert curve.scores[-1] == pytest.approx(end, abs=1e-5)
    np.testing.assert_allclose(fitted.topics.sum(axis=1), 1.0)


def test_full_scale_asks_for_a_corpus():
    with pytest.raises(ValueError, match="--corpus PATH"):
        lda.cases(Setting("full", 3))


def test_a_corpus_by_path_is_parted_into_documents_to_learn_from_and_to_score_on(tmp_path):
    counts = sparse.random(HELD_OUT + 50, 30, 0.3, format="csr", random_state=0)
    counts.data = np.ceil(9 * counts.data).astype(np.int64)
    counts = counts.astype(np.int64)
    path = tmp_path / "mine.npz"
    sparse.save_npz(path, counts)
    (tmp_path / "mine.vocab.txt").write_text("\n".join(f"w{v}" for v in range(30)) + "\n")
    setting = Setting("full", 2, (path,))
    assert count_documents("mine", setting) == 50
    cases = lda.cases(setting)
    assert {case["topics"] for case in cases} == {100}  # too few documents for 500
    assert cases[0]["passes"] == 2000
    documents = load_documents(cases[0], setting)
    assert (documents.train != counts[:50]).nnz == 0
    assert (documents.held_out != counts[50:]).nnz == 0
    assert documents.vocabulary is not None
    assert documents.vocabulary[3] == "w3"
    again = split_documents(documents.held_out, seed=0)
    assert (again.observed != documents.split.observed).nnz == 0


def rows_with(scores, seeds=3, topics=100):
    """Runs that reached the given scores, a little more with each seed."""
    return [
        {
            "corpus": "made",
            "documents": 1000,
            "topics": topics,
            "passes": 2,
            "method": method,
            "seed": seed,
            "vi": score + 0.001 * seed**2 * (1 + k),
            "gibbs": score + 0.002 * seed**2 * (1 + k),
            "last_temperature": 10.0 if method == PRINTED_VT else 1.0,
            "documents_seen": 2000,
            "heat_visits": [0, 500, 1000, 2000],
            "temperatures": [3.0, 2.0, 1.05, 1.0],
        }
        for seed in range(seeds)
        for k, (method, score) in enumerate(scores.items())
    ]


SCORES = {
    "SVI": -8.0,
    AVI[0]: -7.9,
    AVI[1]: -7.8,
    AVI[2]: -7.7,
    "VT": -7.6,
    PRINTED_VT: -9.0,
    DAMPED_VT: -7.5,
    "LVT": -7.4,
    DEFAULT: -7.3,
}


def verdicts(scores, **options):
    return {claim.sentence.split()[0]: claim for claim in claims(rows_with(scores, **options))}


def test_all_claims_hold_where_the_scores_are_in_their_order():
    assert {claim.verdict for claim in claims(rows_with(SCORES))} == {"holds"}
    judged = verdicts(SCORES)
    assert "+0.305" in judged["Annealing"].numbers
    assert "K = 100, 3 seeds" in judged["LVT"].ran


@pytest.mark.parametrize(
    ("method", "score", "claim", "verdict"),
    [
        (AVI[0], -8.1, "Annealing", "holds in part"),
        (AVI[2], -7.85, "Slow", "holds in part"),
        (AVI[2], -8.1, "Slow", "does not hold"),
        ("VT", -7.9, "VT", "does not hold"),
        ("LVT", -7.65, "LVT", "holds in part"),
        ("LVT", -7.9, "LVT", "does not hold"),
        (DEFAULT, -7.6, "This", "does not hold"),
    ],
)
def test_verdicts_follow_the_scores(method, score, claim, verdict):
    changed = {**SCORES, method: score}
    listed = claims(rows_with(changed))
    own = [each for each in listed if each.sentence.startswith(claim)]
    assert own[0].verdict == verdict


def test_one_seed_shows_nothing_for_sure_and_each_size_has_its_own_verdicts():
    judged = verdicts(SCORES, seeds=1)
    assert judged["Annealing"].verdict == "holds in part"
    both = [*rows_with(SCORES), *rows_with(SCORES, seeds=1, topics=500)]
    assert len(claims(both)) == 2 * len(claims(rows_with(SCORES)))


def test_passes_until_the_temperature_is_down():
    (row, *_) = rows_with(SCORES)
    assert passes_above(row) == 1.0
    assert passes_above({**row, "temperatures": [3.0] * 4}) == 2.0


def test_a_corpus_must_have_documents_to_learn_from_and_a_name_of_its_own(tmp_path):
    path = tmp_path / "small.npz"
    sparse.save_npz(path, sparse.csr_matrix(np.ones((20, 3), np.int64)))
    with pytest.raises(ValueError, match=r"small\.npz has 20 documents"):
        lda.cases(Setting("full", 1, (path,)))
    with pytest.raises(ValueError, match="two corpora have one name"):
        lda.cases(Setting("full", 1, (path, tmp_path / "other" / "small.npz")))
