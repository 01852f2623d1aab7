"""All results on one page: ``reproduction.html``, which needs nothing else, and ``.md``."""

from __future__ import annotations

import base64
import html
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tempering.experiments.experiment import Claim, Experiment, Row, Setting, Verdict
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
        parts = [f"tempering reproduce {self.experiment.name} --scale {setting.scale}"]
        parts += [f"--seeds {setting.seeds}"]
        parts += [f"--corpus {path.name}" for path in setting.corpora if self._used(path)]
        if setting.faces and self._used(setting.faces):
            parts += [f"--faces {setting.faces.name}"]
        return " ".join([*parts, "--out reproduction"])

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


def write_page(results: list[Finished], out: Path) -> list[Path]:
    """Write the page twice, and the figures that the second one shows.

    Parameters
    ----------
    results : list of Finished
        In the order of the page.
    out : Path
        The folder with the figures of the experiments.

    Returns
    -------
    list of Path
        ``reproduction.html``, with its figures inside, and ``reproduction.md``, which finds them
        in the folder ``reproduction/``.
    """
    figures = {
        result.experiment.name: figures_of(result.experiment.name, out) for result in results
    }
    (out / FIGURES).mkdir(parents=True, exist_ok=True)
    for path in (path for paths in figures.values() for path in paths):
        shrink(path, out / FIGURES / path.name)
    pages = {
        out / "reproduction.html": as_html(results, figures, out / FIGURES),
        out / "reproduction.md": as_markdown(results, figures),
    }
    for path, text in pages.items():
        with atomic_file(path) as aside:
            aside.write_text(text, encoding="utf-8")
    return list(pages)


def figures_of(name: str, out: Path) -> list[Path]:
    """Figures of an experiment: their names begin with its own, and with no longer one's."""
    from tempering.experiments import SUMMARIES

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
    return "\n".join(lines) + "\n"


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


STYLE = """
:root { color-scheme: light dark; --line: #d5d9e0; --soft: #f4f6f9; --text: #1d2430;
  --paper: #ffffff; --good: #1a7f4b; --part: #a96800; --bad: #b3261e; --dim: #5b6573; }
@media (prefers-color-scheme: dark) { :root { --line: #363d49; --soft: #1e232c; --text: #e4e8ee;
  --paper: #14181e; --good: #58c78f; --part: #e0a84a; --bad: #f2857d; --dim: #9aa4b2; } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem 1rem 4rem; color: var(--text);
  background: var(--paper); font: 16px/1.55 system-ui, sans-serif; overflow-wrap: break-word }
h1 { line-height: 1.2 }
h2 { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 1rem }
.table { overflow-x: auto } table { border-collapse: collapse; width: 100%; font-size: .88rem }
th, td { text-align: left; vertical-align: top; padding: .45rem .6rem;
  border-bottom: 1px solid var(--line) } th { color: var(--dim); white-space: nowrap }
img { max-width: 100%; background: #fff; border-radius: 6px; padding: .4rem; margin: .5rem 0 }
code { background: var(--soft); padding: .15rem .35rem; border-radius: 4px }
.holds { color: var(--good) } .part { color: var(--part) } .not { color: var(--bad) }
.verdict { font-weight: 650; white-space: nowrap }
.dim { color: var(--dim); font-size: .9rem } a { color: inherit }
"""
CLASSES: dict[Verdict, str] = {"holds": "holds", "holds in part": "part", "does not hold": "not"}


def as_html(results: list[Finished], figures: dict[str, list[Path]], folder: Path) -> str:
    """The page as one file."""
    overview = [
        f"<tr><td><a href='#{claim.experiment}'>{claim.experiment}</a></td>"
        f"<td>{_whose(claim)}</td><td>{html.escape(claim.sentence)}</td>"
        f"<td>{_verdict(claim)}</td></tr>"
        for result in results
        for claim in result.claims
    ]
    return "\n".join(
        [
            "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
            "<meta name='viewport' content='width=device-width, initial-scale=1'>",
            "<title>The paper, reproduced</title>",
            f"<style>{STYLE}</style></head><body><h1>The paper, reproduced</h1>",
            f"<p>{html.escape(INTRODUCTION)}</p><p>{html.escape(_summary(results)[0])}</p>",
            "<div class='table'><table>",
            "<tr><th>experiment</th><th>whose</th><th>claim</th><th>verdict</th></tr>",
            *overview,
            "</table></div>",
            *(_section(result, figures[result.experiment.name], folder) for result in results),
            "</body></html>\n",
        ]
    )


def _section(result: Finished, figures: list[Path], folder: Path) -> str:
    experiment = result.experiment
    pictures = [
        f"<img alt='{html.escape(path.stem)}' src='data:image/png;base64,"
        f"{base64.b64encode((folder / path.name).read_bytes()).decode()}'>"
        for path in figures
    ]
    rows = [
        f"<tr><td>{html.escape(claim.sentence)}</td><td>{html.escape(claim.ran)}</td>"
        f"<td>{html.escape(claim.numbers)}</td>"
        f"<td>{_verdict(claim)}<br><span class='dim'>{html.escape(claim.reason)}</span></td></tr>"
        for claim in result.claims
    ]
    return "\n".join(
        [
            f"<h2 id='{experiment.name}'>{html.escape(experiment.title)}</h2>",
            f"<p>{html.escape(experiment.claims_of)}</p>",
            f"<p><code>{html.escape(result.command)}</code></p>",
            f"<p class='dim'>{html.escape(result.cost)}</p>",
            *pictures,
            "<div class='table'><table>",
            "<tr><th>claim</th><th>ran</th><th>numbers</th><th>verdict</th></tr>",
            *rows,
            "</table></div>",
        ]
    )


def _verdict(claim: Claim) -> str:
    mark = f"{MARKS[claim.verdict]} {claim.verdict}"
    return f"<span class='verdict {CLASSES[claim.verdict]}'>{mark}</span>"
