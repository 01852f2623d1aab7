"""Options of the commands, and how their values are read."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

import typer

from tempering.storage.atomic import InUse, alone_in, remove

#: Of the held-out scores, in the directory of a model and in that of its checkpoints.
SCORES = "validation.json"
#: Of the number of topics that was found, in the directory of the checkpoints.
FOUND_TOPICS = "topics.json"


def as_frequency(text: str, option: str) -> int | float:
    """A number of documents (5), or a share of them (0.25)."""
    with suppress(ValueError):
        if text.isdecimal() and int(text) >= 1:
            return int(text)
        if not text.isdecimal() and 0 <= float(text) <= 1:
            return float(text)
    message = f"{option} {text!r} is neither a whole number of 1 or more nor a share from 0 to 1."
    raise typer.BadParameter(message)


def number_or(*names: str) -> Callable[[str | int], int | str]:
    """What reads a whole number, or one of these names."""

    def read(text: str | int) -> int | str:
        number = int(text) if str(text).isdecimal() else 0
        if text not in names and number < 1:
            wanted = f"neither a whole number of 1 or more, nor {' or '.join(names)}"
            raise typer.BadParameter(f"{text!r} is {wanted}.")
        return text if text in names else number

    return read


def as_range(text: str) -> tuple[int, int]:
    """How many words are counted together: "2" for one and two, "2,3" for two and three."""
    least, comma, most = text.partition(",")
    try:
        return (int(least), int(most)) if comma else (1, int(least))
    except ValueError:
        message = f"--ngrams {text!r} is neither a number, nor two such as 1,2."
        raise typer.BadParameter(message) from None


def as_given(text: str) -> Path:
    """A path; "" is what a variable of the shell holds that is not set, not this folder."""
    if not text:
        raise typer.BadParameter("it must name a file or a folder; got ''.")
    return Path(text)


def as_new(path: Path) -> Path:
    """A directory that can be made, beside others: not this one, which "" is too, nor the root."""
    if not path.name:
        raise typer.BadParameter(f"it must name a directory of its own; got {str(path)!r}.")
    return path


def as_character(text: str | None) -> str | None:
    """A character, also where the shell gives it as a backslash and a letter."""
    return "\t" if text in ("\\t", "tab") else text


ModelPath = Annotated[
    Path, typer.Argument(parser=as_given, help="A model that `tempering fit` saved.")
]
CorpusPath = Annotated[
    Path,
    typer.Argument(
        parser=as_given,
        help="Counts (.npz, .mtx, .parquet, .ldac, .svmlight, docword.NAME.txt, also .gz), "
        "with their words beside them (NAME.vocab.txt), or text: .csv, .tsv, .jsonl, .parquet with "
        "a column of text, a folder of them or of .txt.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
Seed = Annotated[
    int,
    typer.Option(min=0, max=2**32 - 1, metavar="N", help="The same seed gives the same numbers."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Threads, or processes where text is counted; one a core by default. Never changes a "
        "result.",
    ),
]


class TextOptions(NamedTuple):
    """How a corpus is read, and where its texts are: each field is an option of that name."""

    format: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The format, where neither name nor content tell it."),
    ] = None
    column: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of text in a table: its column; `text` by default."),
    ] = None
    id: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of text in a table: the column of the documents' ids; by default rows are "
            "numbered from 0.",
        ),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of text: how its characters are stored, such as latin-1; utf-8 by default.",
        ),
    ] = None
    on_error: Annotated[
        Literal["fail", "skip"] | None,
        typer.Option(
            help="Of text: end at a record that cannot be read (fail, the default), or leave it "
            "out and say how many there were."
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(
            metavar="CHARACTER",
            help="Of .csv and .tsv: what stands between two columns, such as ';' or '\\t'.",
            callback=as_character,
        ),
    ] = None


class Counting(NamedTuple):
    """How text is counted: each field is an option of that name."""

    stop_words: Annotated[
        str | None,
        typer.Option(
            metavar="english|none|FILE",
            help="Of text: words to leave out: the commonest English ones (the default), none, or "
            "those of a file, one a line.",
        ),
    ] = None
    ngrams: Annotated[
        str | None,
        typer.Option(
            "--ngrams",
            metavar="N|MIN,MAX",
            help="Of text: count up to N words that follow each other as one, too; 1 by default.",
        ),
    ] = None
    phrases: Annotated[
        bool,
        typer.Option(
            "--phrases",
            help="Of text: count words that stick together, such as new york, as one, too; of "
            "--ngrams, or else of two, only these.",
        ),
    ] = False
    token_pattern: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX",
            help="Of text: what a word is; by default two letters or digits and more, but not "
            "digits alone.",
        ),
    ] = None
    keep_numbers: Annotated[
        bool, typer.Option("--keep-numbers", help="Of text: count numbers as words.")
    ] = False
    min_df: Annotated[
        str | None,
        typer.Option(
            metavar="N|SHARE",
            help="Of text: leave out words in fewer documents: a number, or a share such as 0.001.",
        ),
    ] = None
    max_df: Annotated[
        str | None,
        typer.Option(
            metavar="N|SHARE",
            help="Of text: leave out words in more documents: a number, or a share such as 0.5.",
        ),
    ] = None
    max_words: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Of text: keep the most frequent words only."),
    ] = None


class Settings(NamedTuple):
    """How topics are fitted: each field is an option of that name."""

    topics: Annotated[
        str,
        typer.Option(
            "--topics",
            "-k",
            metavar="N|auto|hdp",
            help="Number of topics. auto: the one from 5 to 100 that predicts held-out words best, "
            "in the time of two to three more fits. hdp: what is left of 150 topics when those are "
            "joined that the documents do not tell apart; about three more fits, of 150 topics.",
            callback=number_or("auto", "hdp"),
        ),
    ]
    passes: Annotated[int, typer.Option(min=1, metavar="N", help="Passes over the documents.")] = 10
    tempering: Annotated[
        Literal["auto", "annealing", "variational", "local", "none"],
        typer.Option(
            help="The temperature. auto, none: T = 1 throughout. The others are the paper's AVI, "
            "VT and LVT."
        ),
    ] = "auto"
    seed: Seed = 0
    jobs: Jobs = None
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Documents of a step; by default 2 to 1024, for about 2,000 steps in all, or more "
            "in a large corpus.",
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
            "Its workers must see a .parquet corpus at the same path.",
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
        from tempering.estimators.saving import check_place

        with ExitStack() as stack:
            try:
                stack.enter_context(alone_in(self.checkpoint))
            except InUse as error:
                hint = "Here, another directory is another --out."
                raise InUse(f"{error} {hint}") from None
            check_place(self.out, self.overwrite, "--overwrite")
            yield
        with suppress(OSError):
            self.checkpoint.rmdir()

    def has_checkpoint(self) -> bool:
        """Whether there is a fit to go on with."""
        from tempering.inference.checkpoint import checkpoints_in

        return bool(checkpoints_in(self.checkpoint))

    def clear(self) -> None:
        """Remove the checkpoints, and nothing else."""
        from tempering.inference.checkpoint import checkpoints_in

        others = (self.checkpoint / name for name in (SCORES, FOUND_TOPICS))
        for path in [*checkpoints_in(self.checkpoint), *others]:
            remove(path)


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command in which an argument that is such a tuple stands for an option a field."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if hasattr(kind, "_fields")}
    flat: list[Parameter] = []
    for name, given in signature(command).parameters.items():
        types, defaults = {name: hints[name]}, {name: given.default}
        if name in groups:
            types = get_type_hints(groups[name], include_extras=True)
            default = given.default
            own = groups[name]._field_defaults if default is given.empty else default._asdict()
            defaults = {field: own.get(field, given.empty) for field in types}
        flat += [
            Parameter(field, Parameter.KEYWORD_ONLY, default=defaults[field], annotation=kind)
            for field, kind in types.items()
        ]

    @wraps(command)
    def run(**options: Any) -> None:
        for name, kind in groups.items():
            options[name] = kind(**{field: options.pop(field) for field in kind._fields})
        command(**options)

    run.__signature__ = Signature(flat)  # pyright: ignore[reportAttributeAccessIssue]
    return run
