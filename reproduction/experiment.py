"""What an experiment is: independent cases, how one is run, a figure, and verdicts on claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

Scale = Literal["quick", "full"]
Verdict = Literal["holds", "holds in part", "does not hold"]

#: Parameters of one independent run (method, seed, ...): what JSON can hold.
Case = dict[str, Any]
#: A case, its result, and the wall clock and CPU seconds it took: ``seconds`` and ``cpu``.
Row = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """How large an experiment is to be, and the real data it may use.

    Parameters
    ----------
    scale : {"quick", "full"}
        Generated data and seconds, or the paper's data and hours.
    seeds : int
        Seeds 0, 1, ..., seeds − 1 are run.
    corpora : tuple of Path
        Corpora of counts, for topic models.
    faces : Path, optional
        An archive of face images.
    """

    scale: Scale = "quick"
    seeds: int = 1
    corpora: tuple[Path, ...] = ()
    faces: Path | None = None


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, or of this package, and whether the numbers bear it out.

    Parameters
    ----------
    experiment : str
        The experiment's name.
    sentence : str
        What is claimed, in short.
    ran : str
        What was run: the data, the seeds, the sizes.
    numbers : str
        What came out, with spreads and the p of a paired test.
    verdict : {"holds", "holds in part", "does not hold"}
        Computed from the rows by the rule that ``reason`` states.
    reason : str
        The rule, or why the claim fails.
    added : bool
        Not a claim of the paper: what this package adds, or an erratum.
    """

    experiment: str
    sentence: str
    ran: str
    numbers: str
    verdict: Verdict
    reason: str
    added: bool = False


@dataclass(frozen=True)
class Experiment:
    """A figure or a claim of the paper that can be run.

    Parameters
    ----------
    name : str
        As in ``python -m reproduction NAME``; its files begin with it.
    title : str
        The heading on the page.
    claims_of : str
        What the paper says, in short.
    cases : callable
        ``cases(setting)`` lists the independent runs. It raises ``ValueError``, saying which
        option to give, where the setting lacks what they need.
    run : callable
        ``run(case, setting)`` makes one of them, and returns what JSON can hold. The same case
        gives the same result.
    draw : callable
        ``draw(rows, out)`` draws ``NAME*.png`` into the folder ``out``.
    claims : callable
        ``claims(rows)`` computes the verdicts.
    default_seeds : mapping
        How many seeds there are at each scale unless somebody says otherwise.
    """

    name: str
    title: str
    claims_of: str
    cases: Callable[[Setting], list[Case]]
    run: Callable[[Case, Setting], dict[str, Any]]
    draw: Callable[[list[Row], Path], None]
    claims: Callable[[list[Row]], list[Claim]]
    default_seeds: Mapping[Scale, int] = field(
        default_factory=lambda: MappingProxyType({"quick": 2, "full": 3})
    )
