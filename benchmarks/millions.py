"""From a folder of Parquet files of text to a report: seconds and memory of each phase.

    python benchmarks/millions.py FOLDER [--documents 6000000] [--topics 100] [--passes 1]

Draws documents of 200 words from known topics of 100,000 made-up words, whose frequencies fall as
those of English do, and writes them into FOLDER as text, a file for every 50,000. Then it runs the
commands of the package on them, each in a process of its own, and compares the topics with the true
ones: agreement, and held-out nats a word (exact proportions) beside those of the true topics and of
the frequencies of words. Files that are there already are not drawn again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

from lda_common import print_table, write_json
from tempering.corpus import open_source
from tempering.estimators.saving import load
from tempering.evaluation import completion_score, split_documents, topic_stability

N_WORDS, LENGTH, FILE_DOCUMENTS = 100_000, 200, 50_000
TEST_DOCUMENTS, TOPICS_OF_A_DOCUMENT = 2000, 4
CONSONANTS, VOWELS = "bcdfghklmnprstvz", "aeiou"
LOOK_SECONDS = 0.5


def main() -> None:
    """Draw, convert, fit, report, compare."""
    options = _parse_options()
    folder = options.folder
    # By all that they are drawn from: else texts of another run would be taken for these.
    texts = folder / f"texts-{options.documents}-{options.topics}"
    texts.mkdir(parents=True, exist_ok=True)
    topics = true_topics(options.topics)
    rows = [timed("draw the texts (no part of it)", lambda: draw(texts, topics, options))]
    counts, model, report = folder / "counts.parquet", folder / "model", folder / "report.html"
    words = ["--min-df", "5"]
    fit = ["fit", "--topics", str(options.topics), "--passes", str(options.passes)]
    commands = {
        "read and count": ["convert", texts, counts, "--column", "text", *words],
        "fit": [*fit, counts, "--out", model],
        "report": ["report", model, counts, "--out", report],
    }
    if options.at_once:
        whole = [*fit, texts, "--column", "text", *words, "--out", folder / "at-once"]
        commands["fit to the text at once"] = whole
    for name, words in commands.items():
        if name in options.skip:
            continue
        rows.append(timed(name, lambda words=words: run_command([*words, "--overwrite"])))
        print(rows[-1], flush=True)
    print(
        f"counts {counts.stat().st_size / 2**20:.0f} MB, report {report.stat().st_size / 2**20} MB"
    )
    print_table(f"{options.documents:,} documents, {os.cpu_count()} cores", rows)
    scores = compare(counts, model, topics)
    print_table("How good the topics are", scores)
    write_json(options.json, {"phases": rows, "scores": scores})


def timed(name: str, work: Any) -> dict[str, Any]:
    """A row of the table."""
    began = time.perf_counter()
    peak = work()
    return {"phase": name, "s": time.perf_counter() - began, "peak GB": peak}


def run_command(words: list[Any]) -> float:
    """Run the package; the most memory that it and its workers hold at a time, in GB."""
    command = [sys.executable, "-m", "tempering", *map(str, words)]
    process = subprocess.Popen(command, start_new_session=True)
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, memory_of_session(process.pid))
        time.sleep(LOOK_SECONDS)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return peak


def memory_of_session(session: int) -> float:
    """GB that the processes of a session hold, what they share counted once."""
    total = 0
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and os.getsid(int(folder.name)) == session:
                for line in (folder / "smaps_rollup").read_text().splitlines():
                    total += int(line.split()[1]) if line.startswith("Pss:") else 0
        except (OSError, ValueError):  # it has ended
            continue
    return total / 2**20


def vocabulary() -> list[str]:
    """Words of two syllables and more, the frequent ones short."""
    syllables = [a + b for a in CONSONANTS for b in VOWELS]
    n = len(syllables)
    words = [a + b for a in syllables for b in syllables]
    for number in range(N_WORDS - len(words)):
        first, rest = divmod(number, n * n)
        words.append(syllables[first] + syllables[rest // n] + syllables[rest % n])
    return words


def true_topics(n_topics: int) -> np.ndarray:
    """Topics [K, V] that are peaked around frequencies of Zipf's kind."""
    rng = np.random.default_rng(0)
    base = 1.0 / (np.arange(N_WORDS) + 20.0)
    topics = rng.gamma(np.maximum(base / base.sum() * 2000.0, 1e-4), size=(n_topics, N_WORDS))
    return topics / topics.sum(axis=1, keepdims=True)


def draw(texts: Path, topics: np.ndarray, options: argparse.Namespace) -> float:
    """The files of text that are not there yet."""
    starts = range(0, options.documents, FILE_DOCUMENTS)
    todo = [start for start in starts if not (texts / f"{start:09d}.parquet").exists()]
    Parallel(-1)(
        delayed(draw_file)(texts, topics, start, min(FILE_DOCUMENTS, options.documents - start))
        for start in todo
    )
    return 0.0


def draw_words(topics: np.ndarray, seed: int, n_documents: int) -> np.ndarray:
    """Words [documents, LENGTH] of documents that have a few topics each."""
    rng = np.random.default_rng(seed)
    ends = np.cumsum(topics, axis=1)
    ends /= ends[:, -1:]
    own = rng.integers(len(topics), size=(n_documents, TOPICS_OF_A_DOCUMENT))
    shares = np.cumsum(rng.dirichlet(np.ones(TOPICS_OF_A_DOCUMENT), n_documents), axis=1)
    which = (rng.random((n_documents, LENGTH, 1)) > shares[:, None, :-1]).sum(axis=2)
    topic = np.take_along_axis(own, which, axis=1).ravel()
    words = np.empty(topic.size, np.int32)
    for k in range(len(topics)):
        places = np.flatnonzero(topic == k)
        words[places] = np.searchsorted(ends[k], rng.random(places.size))
    return np.minimum(words, N_WORDS - 1).reshape(n_documents, LENGTH)


def draw_file(texts: Path, topics: np.ndarray, start: int, n_documents: int) -> None:
    """A file of documents, written whole or not at all."""
    import pyarrow
    from pyarrow import parquet

    known = np.array(vocabulary(), dtype=object)
    drawn = draw_words(topics, 1 + start, n_documents)
    lines = [" ".join(known[words]) for words in drawn]
    path = texts / f"{start:09d}.parquet"
    aside = path.with_suffix(".part")
    parquet.write_table(pyarrow.table({"text": lines}), aside, row_group_size=10_000)
    aside.rename(path)


def compare(counts: Path, model: Path, topics: np.ndarray) -> list[dict[str, Any]]:
    """The topics beside the true ones and the frequencies of words, on new documents."""
    places = {word: place for place, word in enumerate(vocabulary())}
    found = np.asarray(load(model).components_, np.float64)
    kept = [places[word] for word in open_source(counts).vocabulary or ()]
    truth = topics[:, kept] / topics[:, kept].sum(axis=1, keepdims=True)
    drawn = draw_words(topics, 0, TEST_DOCUMENTS)
    rows = np.repeat(np.arange(TEST_DOCUMENTS), LENGTH)
    cells = (np.ones(drawn.size), (rows, drawn.ravel()))
    new = sparse.csr_array(cells, (TEST_DOCUMENTS, N_WORDS))[:, kept]
    observed, held_out = split_documents(sparse.csr_matrix(new), seed=0)
    prior = TOPICS_OF_A_DOCUMENT / len(topics)
    frequencies = truth.mean(axis=0, keepdims=True)
    compared = {"fitted": found, "true topics": truth, "frequencies of words": frequencies}
    results = []
    for name, own in compared.items():
        own = own / own.sum(axis=1, keepdims=True)
        nats = completion_score(observed, held_out, own, prior, "gibbs")
        agreement = float(topic_stability(truth, own)) if len(own) > 1 else None
        results.append({"what": name, "nats a word": nats, "agreement": agreement})
    return results


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--documents", type=int, default=6_000_000)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--at-once", action="store_true", help="fit to the text in one command too")
    phases = ["read and count", "fit", "report"]
    parser.add_argument("--skip", nargs="*", default=[], choices=phases, help="done before")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
