"""``tempering fit``: its options."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import typer

from tempering.cli.options import (
    CorpusPath,
    Counting,
    Format,
    Jobs,
    Json,
    Overwrite,
    Seed,
    Texts,
    Vocabulary,
    as_new,
)
from tempering.storage.lock import InUse, alone_in

CHECKPOINTS = "checkpoint-*.safetensors"
#: Of the held-out scores, in the directory of a model and in that of its checkpoints.
SCORES = "validation.json"


class Settings(NamedTuple):
    """How topics are fitted: each field is an option of that name."""

    topics: Annotated[
        int, typer.Option("--topics", "-k", min=1, metavar="N", help="Number of topics.")
    ]
    passes: Annotated[int, typer.Option(min=1, metavar="N", help="Passes over the documents.")] = 10
    tempering: Annotated[
        Literal["auto", "annealing", "variational", "local", "none"],
        typer.Option(
            help="auto: cooled from a temperature computed from the corpus. none: plain SVI. The "
            "others are the paper's AVI, VT and LVT."
        ),
    ] = "auto"
    seed: Seed = 0
    jobs: Jobs = None
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Documents of a step; by default 16 to 1024, for 2,000 steps or more in all.",
        ),
    ] = None
    validation: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="SHARE|N",
            help="Documents to keep out of the fit and to score: a share below 1, or a number; 0 "
            "for none. By default 5%, and 1000 at most.",
        ),
    ] = None
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Fit on a Dask cluster: the address of its scheduler, such as tcp://host:8786. "
            "Its workers must see a .parquet or .csr corpus at the same path.",
        ),
    ] = None


class Keeping(NamedTuple):
    """Where the model goes, and how the fit is kept until it is there; fields are options."""

    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The directory of the model.", callback=as_new)
    ] = Path("model")
    checkpoint_minutes: Annotated[
        float,
        typer.Option(
            min=0, metavar="MINUTES", help="Time between two checkpoints, in OUT.checkpoint."
        ),
    ] = 5.0
    resume: Annotated[
        bool,
        typer.Option("--resume/--restart", help="Go on with a fit that was interrupted, or anew."),
    ] = True
    overwrite: Overwrite = False

    @property
    def checkpoint(self) -> Path:
        """The directory of the checkpoints."""
        return self.out.with_name(f"{self.out.name}.checkpoint")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Refuse, before a long fit, a place that is taken, or that another fit is at work in."""
        with ExitStack() as stack:
            try:
                stack.enter_context(alone_in(self.checkpoint))
            except InUse as error:
                hint = "Here, another directory is another --out."
                raise InUse(f"{error} {hint}") from None
            if self.out.exists() and not self.overwrite:
                raise FileExistsError(
                    f"{self.out} exists already: pass --overwrite to replace it, or another --out."
                )
            if self.out.exists() and not (self.out / "config.json").is_file():
                raise FileExistsError(f"{self.out} is not a saved model, and is not replaced.")
            yield
        with suppress(OSError):
            self.checkpoint.rmdir()

    def has_checkpoint(self) -> bool:
        """Whether there is a fit to go on with."""
        return any(self.checkpoint.glob(CHECKPOINTS))

    def clear(self) -> None:
        """Remove the checkpoints, and nothing else."""
        for file in [*self.checkpoint.glob(CHECKPOINTS), self.checkpoint / SCORES]:
            file.unlink(missing_ok=True)


def fit(
    corpus: CorpusPath,
    *,
    settings: Settings,
    vocabulary: Vocabulary = None,
    keeping: Keeping,
    as_json: Json = False,
    format: Format = None,
    texts: Texts,
    counting: Counting,
) -> None:
    """Fit topics to a corpus, and save the model.

    Of text, English stop words, numbers, words in a single document and words in more than half of
    the documents are left out. The model remembers how words were counted.

    Ctrl-C saves a checkpoint; the same command goes on from there, and ends in the same bits as if
    it had never been interrupted. A .parquet or .csr corpus is streamed: memory does not grow with
    the number of its documents.

    \b
    Examples:
      tempering fit 20news.npz --topics 50 --out news
      tempering fit folder-of-text/ --topics 20
      tempering fit posts.csv --column body --id post --topics 100 --ngrams 2
      tempering fit big.parquet --topics 100 --batch-size 4096 --scheduler tcp://host:8786
    """
    from tempering.cli.corpora import Reading
    from tempering.cli.fitting import run_fit

    with keeping.alone():
        run_fit(Reading(corpus, format, texts), vocabulary, counting, settings, keeping, as_json)
