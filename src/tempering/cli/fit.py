"""``tempering fit``: topics of a corpus."""

from tempering.cli.options import (
    CorpusPath,
    Counting,
    Format,
    Json,
    Keeping,
    Settings,
    TextOptions,
    Vocabulary,
)


def fit(
    corpus: CorpusPath,
    *,
    settings: Settings,
    vocabulary: Vocabulary = None,
    keeping: Keeping,
    as_json: Json = False,
    format: Format = None,
    texts: TextOptions,
    counting: Counting,
) -> None:
    """Fit topics to a corpus, and save the model.

    Of text, English stop words, numbers, words in a single document and words in more than half of
    the documents are left out. The model remembers how words were counted.

    Ctrl-C saves a checkpoint; the same command goes on from there, and ends in the same bits as if
    it had never been interrupted. A .parquet corpus is streamed: memory does not grow with the
    number of its documents.

    \b
    Examples:
      tempering fit 20news.npz --topics 50 --out news
      tempering fit folder-of-text/ --topics 20
      tempering fit folder-of-text/ --topics auto
      tempering fit posts.csv --column body --id post --topics 100 --ngrams 2
      tempering fit big.parquet --topics 100 --batch-size 4096 --scheduler tcp://host:8786
    """
    from tempering.cli.corpora import Reading
    from tempering.cli.fitting import run_fit

    with keeping.alone():
        run_fit(Reading(corpus, format, texts), vocabulary, counting, settings, keeping, as_json)
