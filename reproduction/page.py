"""All results on one page, ``reproduction.md``."""

from __future__ import annotations

import textwrap
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from reproduction.experiment import Claim, Experiment, Row, Setting, Verdict
from tempering.storage.atomic import atomic_file

INTRODUCTION = (
    "Each experiment of “Variational Tempering” (Mandt, McInerney, Abrol, Ranganath and Blei, "
    "AISTATS 2016), run again. Verdicts are computed from the numbers by the rule that stands "
    "beside them. ± is a standard deviation over seeds; tests are paired and two-sided: Wilcoxon's "
    "from ten pairs on, else the t-test. Rows that say “ours” are not claims of the paper, but "
    "errata and what this package adds."
)
MARKS: dict[Verdict, str] = {"holds": "✓", "holds in part": "~", "does not hold": "✗"}
#: The folder beside the page in which it looks for its figures.
FIGURES = "reproduction"


@dataclass(frozen=True)
class Finished:
    """An experiment that was run, and what came of it."""

    experiment: Experiment
    setting: Setting
    rows: list[Row]
    claims: list[Claim]

    @property
    def command(self) -> str:
        """What runs it again; of paths only the names."""
        setting = self.setting
        parts = [f"python -m reproduction {self.experiment.name} --scale {setting.scale}"]
        parts += [f"--seeds {setting.seeds}"]
        parts += [f"--corpus {path.name}" for path in setting.corpora if self._used(path)]
        if setting.faces and self._used(setting.faces):
            parts += [f"--faces {setting.faces.name}"]
        return " ".join(parts)

    def _used(self, path: Path) -> bool:
        """Whether a row names these data."""
        values = (value for row in self.rows for value in row.values() if isinstance(value, str))
        return any(path.stem in value for value in values)

    @property
    def cost(self) -> str:
        """How many runs, seconds and machines."""
        wall, cpu = (sum(row[name] for row in self.rows) for name in ("seconds", "cpu"))
        machines = "; ".join(dict.fromkeys(row["machine"] for row in self.rows))
        return f"{len(self.rows)} runs, {wall:,.0f} s wall clock, {cpu:,.0f} s CPU; {machines}."


def write_page(results: list[Finished], out: Path) -> Path:
    """Write ``reproduction.md``, and the figures that it shows, in the folder ``reproduction/``.

    Parameters
    ----------
    results : list of Finished
        In the order of the page.
    out : Path
        The folder with the figures of the experiments.
    """
    figures = {
        result.experiment.name: figures_of(result.experiment.name, out) for result in results
    }
    (out / FIGURES).mkdir(parents=True, exist_ok=True)
    for path in (path for paths in figures.values() for path in paths):
        shrink(path, out / FIGURES / path.name)
    page = out / "reproduction.md"
    with atomic_file(page) as aside:
        aside.write_text(as_markdown(results, figures), encoding="utf-8")
    return page


def figures_of(name: str, out: Path) -> list[Path]:
    """Figures of an experiment: their names begin with its own, and with no longer one's."""
    from reproduction import SUMMARIES

    def owner(path: Path) -> str:
        stem = path.stem.replace("_", "-")
        matching = [other for other in SUMMARIES if stem == other or stem.startswith(f"{other}-")]
        return max(matching, key=len, default="")

    return sorted((path for path in out.glob("*.png") if owner(path) == name), key=_main_first)


def _main_first(path: Path) -> tuple[int, str]:
    return len(path.stem), path.name


def shrink(path: Path, smaller: Path) -> None:
    """The same picture in 256 colours, which is enough for a drawing and a third of the bytes."""
    from PIL import Image

    with Image.open(path) as picture, atomic_file(smaller) as aside:
        picture.convert("RGB").quantize(256).save(aside, format="PNG", optimize=True)


def tally(claims: list[Claim]) -> str:
    """How many claims hold, hold in part, and do not."""
    counts = Counter(claim.verdict for claim in claims)
    return (
        f"{counts['holds']} hold, {counts['holds in part']} hold in part, "
        f"{counts['does not hold']} do not hold"
    )


def as_markdown(results: list[Finished], figures: dict[str, list[Path]]) -> str:
    """The page for a repository."""
    lines = ["# The paper, reproduced", "", INTRODUCTION, ""]
    lines += _summary(results)
    lines += ["", "| | experiment | whose | claim | verdict |", "|---|---|---|---|---|"]
    for result in results:
        lines += [
            f"| {MARKS[claim.verdict]} | [{claim.experiment}](#{claim.experiment}) "
            f"| {_whose(claim)} | {_cell(claim.sentence)} | {claim.verdict} |"
            for claim in result.claims
        ]
    for result in results:
        experiment = result.experiment
        lines += [
            "",
            f"## {experiment.name}",
            "",
            f"**{experiment.title}.** {experiment.claims_of}",
        ]
        lines += ["", f"    {result.command}", "", result.cost, ""]
        lines += [f"![{path.stem}]({FIGURES}/{path.name})\n" for path in figures[experiment.name]]
        lines += ["| claim | ran | numbers | verdict |", "|---|---|---|---|"]
        for claim in result.claims:
            cells = claim.sentence, claim.ran, claim.numbers, f"**{claim.verdict}.** {claim.reason}"
            lines.append(f"| {' | '.join(map(_cell, cells))} |")
    return "\n".join(map(_wrapped, lines)) + "\n"


def _wrapped(line: str) -> str:
    """A paragraph in short lines; tables, code and pictures as they are."""
    if line.startswith(("|", " ", "!", "#")):
        return line
    return textwrap.fill(line, 100, break_long_words=False, break_on_hyphens=False)


def _summary(results: list[Finished]) -> list[str]:
    every = [claim for result in results for claim in result.claims]
    return [
        f"Of the paper's claims: {tally([claim for claim in every if not claim.added])}. "
        f"Of the errata and of what this package adds: "
        f"{tally([claim for claim in every if claim.added])}."
    ]


def _whose(claim: Claim) -> str:
    return "ours" if claim.added else "paper"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
