"""C_V, C_NPMI and UMass beside gensim's, on three drawn corpora.

Two programs, as gensim needs an environment of its own:

    python benchmarks/coherence_against_gensim.py > ours.json
    python-with-gensim benchmarks/coherence_against_gensim.py --gensim < ours.json

The first draws texts and topics and measures them; the second measures the same with gensim, and
prints its values and the largest difference.
"""

import argparse
import json
import sys

#: Documents, mean words of one, words of the vocabulary, topics.
CORPORA = {"short": (40, 8, 30, 3), "medium": (60, 60, 60, 5), "long": (30, 400, 200, 8)}
N_WORDS = 5


def drawn(seed, n_documents, mean_length, n_words, n_topics):
    """Texts as lists of columns, and topics; common words come again within a window."""
    import numpy as np

    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.3), n_topics)
    texts = []
    for length in rng.poisson(mean_length, n_documents):
        words = rng.dirichlet(np.full(n_topics, 0.5)) @ topics
        texts.append(rng.choice(n_words, length, p=words).tolist())
    return topics, texts


def measure_ours():
    """The texts, the top words and our values of each corpus."""
    import numpy as np

    from tempering.evaluation import c_npmi, c_v, top_words, umass

    found = {}
    for seed, (name, sizes) in enumerate(CORPORA.items()):
        topics, texts = drawn(seed, *sizes)
        counts = np.array([np.bincount(text, minlength=topics.shape[1]) for text in texts])
        found[name] = {
            "texts": texts,
            "top": top_words(topics, N_WORDS).tolist(),
            "c_v": c_v(topics, texts, n_words=N_WORDS).tolist(),
            "c_npmi": c_npmi(topics, texts, n_words=N_WORDS).tolist(),
            "u_mass": umass(topics, counts, n_words=N_WORDS).tolist(),
        }
    return found


def compare(found):
    """Print gensim's values, and how far ours are from them."""
    from gensim.corpora import Dictionary
    from gensim.models import CoherenceModel

    for name, ours in found.items():
        texts = [[str(word) for word in text] for text in ours["texts"]]
        words = Dictionary(texts)
        for measure in ("c_v", "c_npmi", "u_mass"):
            corpus = [words.doc2bow(text) for text in texts]
            source = {"corpus": corpus} if measure == "u_mass" else {"texts": texts}
            top = [[str(word) for word in topic] for topic in ours["top"]]
            theirs = CoherenceModel(
                topics=top, dictionary=words, coherence=measure, topn=N_WORDS, processes=1, **source
            ).get_coherence_per_topic()
            apart = max(abs(a - b) for a, b in zip(theirs, ours[measure], strict=True))
            values = [round(float(value), 8) for value in theirs]
            print(f"{name:7} {measure:7} apart {apart:.1e}  gensim {values}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gensim", action="store_true", help="compare what stands on stdin")
    if parser.parse_args().gensim:
        compare(json.load(sys.stdin))
    else:
        json.dump(measure_ours(), sys.stdout)
