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
            help="Prior of the topic proportions; by default 5 / K for K topics, as in the scores "
            "of a fit. Compare models at the same sum of it.",
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
    better. The score is that of the progress and the report of a fit. It is called a training score
    if the model was fitted to these documents, and a held-out score if it was fitted to none of
    them. Coherence is NPMI: whether the top words of a topic occur together; 1 at best.

    \b
    Example:
      tempering evaluate model test.npz
    """
    from tempering.cli.corpora import ModelCorpus, Reading, load_topics
    from tempering.cli.validation import inference_for, score_topics
    from tempering.estimators.fitted_documents import count_fitted
    from tempering.evaluation import split_documents

    fitted = load_topics(model).set_params(n_jobs=jobs)
    given = ModelCorpus(Reading(corpus, texts), fitted)
    with error_console().status("Scoring"):
        counts = given.sample(documents, seed)
        split = split_documents(counts, seed)
        score = score_topics(split, fitted.components_, jobs, alpha=alpha, seed=seed)
        coherence = fitted.coherence(counts, words)
        n_fitted, n_looked_up = count_fitted(fitted, counts)
    n, npmi = counts.shape[0], float(coherence.mean())
    kind = _kind(n_fitted, n_looked_up)
    if as_json:
        told = {
            "model": str(model),
            "corpus": str(corpus),
            "n_documents": n,
            "n_looked_up": n_looked_up,
            "n_fitted": n_fitted,
            "kind": kind,
            "score": score,
            "inference": inference_for(counts),
            "npmi": npmi,
            "npmi_by_topic": coherence.tolist(),
        }
        print_json(told)
        return
    known = f"{n_fitted:,} of {n_looked_up:,}" if n_looked_up else "not known to this model"
    facts = {
        "documents": n,
        "documents of the fit": known,
        kind: f"{minus(score)} nats a word",
        "coherence (NPMI)": minus(npmi, 3),
    }
    print_facts(facts.items())


def _kind(n_fitted: int, n_looked_up: int) -> str:
    """Return what the score is called."""
    if n_looked_up == 0:
        return "score"
    names = {0: "held-out score", n_looked_up: "training score"}
    return names.get(n_fitted, "score, in part on training documents")
