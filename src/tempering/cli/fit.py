"""``tempering fit``: topics of a corpus, to a model on disk."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tempering.cli.options import (
    FOUND_TOPICS,
    CorpusPath,
    Counting,
    Json,
    Keeping,
    Settings,
    TextOptions,
)
from tempering.cli.printing import console, error_console, minus, print_json, print_topics, say
from tempering.cli.topics import topic_rows

if TYPE_CHECKING:
    from tempering.cli.corpora import Reading
    from tempering.cli.validation import Validation
    from tempering.cluster import DaskExecutor
    from tempering.corpus import Stored
    from tempering.estimators import LatentDirichletAllocation

#: Topics that are printed; `tempering topics` prints all.
PRINTED = 20


def fit(
    corpus: CorpusPath,
    *,
    settings: Settings,
    keeping: Keeping,
    as_json: Json = False,
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
    from tempering.corpus.text_counts import TextCounts

    reading = Reading(corpus, texts)
    with keeping.alone():
        stored, result = _fit_and_save(reading, counting, settings, keeping)
    if as_json:
        print_json(result)
    else:
        # Options for text would be told to be without effect on counts.
        if not isinstance(stored, TextCounts):
            reading = Reading(corpus, TextOptions(texts.format))
        _print_result(result, reading)


def _fit_and_save(
    reading: Reading,
    counting: Counting,
    settings: Settings,
    keeping: Keeping,
) -> tuple[Stored, dict[str, Any]]:
    """The corpus as it was read, and what there is to tell of the fit."""
    from tempering.cli.corpora import counter, say_if_counted, streams
    from tempering.cli.validation import split_corpus
    from tempering.corpus import Corpus, CorpusError
    from tempering.estimators import LatentDirichletAllocation
    from tempering.estimators.recipe import batch_size_for
    from tempering.models.compilation import working_seconds

    executor = None if settings.scheduler is None else _connected(settings.scheduler)
    model = LatentDirichletAllocation(
        tempering=None if settings.tempering == "none" else settings.tempering,
        max_iter=settings.passes,
        batch_size=settings.batch_size or "auto",
        random_state=settings.seed,
        n_jobs=settings.jobs,
        executor=executor,
    )
    with error_console().status(f"Reading {reading.path}"):
        stored = reading.open(counter(counting), phrases=counting.phrases, jobs=settings.jobs)
        (n_documents, n_words), words = stored.shape, stored.vocabulary
        if not (n_documents and n_words):
            raise CorpusError(
                f"there is nothing to fit: {n_documents} documents of {n_words} words."
            )
        batch_size = settings.batch_size or batch_size_for(n_documents * settings.passes)
        share, seed = settings.validation, settings.seed
        training, held_out = split_corpus(reading, stored, share, batch_size, seed)
        if not streams(stored):
            # The model takes its words from a corpus, and how text was made into them.
            training = Corpus(training, words, counting=getattr(stored, "counting", None))
    how = ", streamed" if streams(stored) else ""
    line = f"{reading.path}: {n_documents:,} documents, {n_words:,} words{how}"
    error_console().print(line, soft_wrap=True, markup=False)
    say_if_counted(stored, reading, counting)
    resumed = keeping.resume and keeping.has_checkpoint()
    if resumed:
        say(f"going on with the fit in {keeping.checkpoint}; --restart begins anew.")
    elif not keeping.resume:
        keeping.clear()
    tried: list[dict[str, Any]] = []
    if str(settings.topics) in ("auto", "hdp"):
        n_topics, tried = _find_n_topics(model, training, settings, keeping)
    else:
        n_topics = int(settings.topics)
    model.set_params(n_components=n_topics)
    started = working_seconds()
    validation = _fit(model, training, held_out, keeping)
    if executor is not None:
        executor.close()
        model.set_params(executor=None)
    seconds = working_seconds() - started
    model.save(keeping.out, words, overwrite=keeping.overwrite)
    if validation is not None:
        validation.write(keeping.out)
    keeping.clear()

    return stored, {
        "model": str(keeping.out),
        "corpus": str(reading.path),
        "n_documents": n_documents,
        "n_words": n_words,
        "n_topics": n_topics,
        "tried": tried,
        "held_out_score": validation.scores[-1][1] if validation else None,
        "n_validation_documents": validation.n_documents if validation else 0,
        "seconds": round(seconds, 3),
        "resumed": resumed,
        "topics": topic_rows(model, 10, words),
    }


def _connected(scheduler: str) -> DaskExecutor:
    """The cluster, found before the corpus is read."""
    from tempering.cluster import DaskExecutor
    from tempering.inference.executors import ClusterLost

    executor = DaskExecutor(scheduler)
    try:
        executor.batch_size()
    except ClusterLost as error:
        raise ClusterLost(f"--scheduler {scheduler}: {error}") from None
    return executor


def _find_n_topics(
    model: LatentDirichletAllocation, training: Any, settings: Settings, keeping: Keeping
) -> tuple[int, list[dict[str, Any]]]:
    """The number of topics, and the fits that tell; a fit that goes on has found it before."""
    import numpy as np
    from sklearn.base import clone

    from tempering.inference import BlockSource
    from tempering.workbench import choose_n_topics
    from tempering.workbench.joining import joined_number

    file = keeping.checkpoint / FOUND_TOPICS
    if keeping.resume and keeping.has_checkpoint() and file.is_file():
        with suppress(ValueError, KeyError):
            asked, n_topics = json.loads(file.read_text()).values()
            if asked == settings.topics:
                return int(n_topics), []
            raise typer.BadParameter(
                f"--topics {settings.topics}: the fit in {keeping.checkpoint} was begun with "
                f"--topics {asked}. Give that to go on, --restart to begin anew, or another --out."
            )
    documents = training
    if isinstance(training, BlockSource):
        documents = training.sample(20_000, np.random.default_rng(settings.seed))
    plain = clone(model).set_params(executor=None)
    with error_console().status("Looking for the number of topics"):
        look = joined_number if str(settings.topics) == "hdp" else choose_n_topics
        answer = look(documents, estimator=plain, random_state=settings.seed)
    error_console().print(str(answer), markup=False)
    keeping.checkpoint.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"asked": settings.topics, "n_topics": answer.n_topics}))
    return answer.n_topics, [trial._asdict() for trial in answer.trials]


def _fit(
    model: LatentDirichletAllocation, training: Any, held_out: Any, keeping: Keeping
) -> Validation | None:
    """Fit the model; the scores on the documents that were kept out, if any can be scored."""
    from tempering.cli.validation import Validation, shown
    from tempering.inference import Checkpoint
    from tempering.storage.atomic import Terminated
    from tempering.storage.state import StorageError

    validation = None
    if held_out is not None:
        folder, resume = keeping.checkpoint, keeping.has_checkpoint()
        validation = Validation(held_out, model.n_jobs, folder, resume)
        if not validation.can_score:
            say("warning: the validation documents are too short to be scored.")
            validation = None
    callbacks: list[Any] = [] if validation is None else [validation]
    try:
        with shown(validation) as progress:
            model.fit(
                training,
                checkpoint=Checkpoint(keeping.checkpoint, keeping.checkpoint_minutes),
                callbacks=[*callbacks, progress],
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_how_to_resume(keeping, "interrupted")) from None
    except Terminated:
        raise Terminated(_how_to_resume(keeping, "terminated")) from None
    except StorageError as error:
        hint = "Here, resume=False is --restart, and another directory is another --out."
        raise StorageError(f"{error} {hint}") from error
    if validation is not None:
        validation.score(model.history_[-1].data_seen, model.components_)
    return validation


def _how_to_resume(keeping: Keeping, what: str) -> str:
    if not keeping.has_checkpoint():
        return f"{what} before the first step; nothing was kept."
    again = "the same command" if keeping.resume else "the same command without --restart"
    return f"{what}; {keeping.checkpoint} holds the fit. To go on from there, give {again}."


def _print_result(result: dict[str, Any], reading: Reading) -> None:
    rows = result["topics"]
    print_topics(rows[:PRINTED])
    out = console()
    if len(rows) > PRINTED:
        rest = f"and {len(rows) - PRINTED} more: tempering topics {result['model']}"
        out.print(f"       {rest}", style="dim", markup=False)
    out.print()
    if result["held_out_score"] is not None:
        out.print(
            f"Held-out score: {minus(result['held_out_score'])} nats a word, on "
            f"{result['n_validation_documents']:,} documents that the fit did not see"
        )
    out.print(f"Model: {result['model']} ({result['seconds']:.1f} s)", markup=False)
    next_step = ["tempering", "report", result["model"], result["corpus"], *reading.options()]
    others = (f"report-{i}.html" for i in count(2))
    free = (name for name in chain(["report.html"], others) if not Path(name).exists())
    next_step += ["--out", next(free)]
    out.print(f"Look at it: {shlex.join(next_step)}", markup=False, soft_wrap=True)
