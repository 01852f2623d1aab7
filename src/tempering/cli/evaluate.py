"""``tempering evaluate``: held-out score and coherence."""

from typing import Annotated

import typer

from tempering.cli.options import CorpusPath, Jobs, Json, ModelPath, Seed, TextOptions
from tempering.cli.printing import error_console, minus, print_facts, print_json


def evaluate(
    model: ModelPath,
    corpus: CorpusPath,
    documents: Annotated[
        int, typer.Option(min=1, help="Of a larger corpus, so many documents are drawn.")
    ] = 10_000,
    alpha: Annotated[
        float | None,
        typer.Option(
            min=1e-6,
            help="Prior of the topic proportions; that of the fit by default. Compare models at "
            "the same one.",
        ),
    ] = None,
    words: Annotated[int, typer.Option(min=2, help="Words of a topic, for its coherence.")] = 10,
    seed: Seed = 0,
    jobs: Jobs = None,
    as_json: Json = False,
    *,
    texts: TextOptions,
) -> None:
    """Score a model on documents.

    Half of the words of each document are predicted from the other half, in nats a word; higher is
    better. Give documents that were not fitted. `gibbs` infers the topics of a document exactly (by
    Monte Carlo, if counts are whole), `vi` by mean field. Coherence is NPMI: whether the top words
    of a topic occur together; 1 at best.

    \b
    Example:
      tempering evaluate model test.npz
    """
    import numpy as np

    from tempering.cli.corpora import ModelCorpus, Reading, load_topics

    fitted = load_topics(model).set_params(n_jobs=jobs)
    given = ModelCorpus(Reading(corpus, texts), fitted)
    with error_console().status("Scoring"):
        counts = given.sample(documents, seed)
        vi, gibbs = fitted.completion_score(counts, seed, alpha=alpha), None
        if np.array_equal(counts.data, np.floor(counts.data)):  # weights have no tokens to sample
            gibbs = fitted.completion_score(counts, seed, inference="gibbs", alpha=alpha)
        coherence = fitted.coherence(counts, words)
    n, npmi = counts.shape[0], float(coherence.mean())
    if as_json:
        told = {
            "model": str(model),
            "corpus": str(corpus),
            "n_documents": n,
            "completion_vi": vi,
            "completion_gibbs": gibbs,
            "npmi": npmi,
            "npmi_by_topic": coherence.tolist(),
        }
        print_json(told)
        return
    facts = {
        "documents": n,
        "held-out score, gibbs": "–" if gibbs is None else f"{minus(gibbs, 4)} nats a word",
        "held-out score, vi": f"{minus(vi, 4)} nats a word",
        "coherence (NPMI)": minus(npmi, 3),
    }
    print_facts(facts.items())
