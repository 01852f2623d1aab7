"""Pages are short, and their lines can be read in any editor."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from draw_images import PICTURES

ROOT = Path(__file__).parents[2]
LONGEST_LINE, MOST_WORDS = 120, 1500
#: Written by a program (`python -m reproduction`), and as long as its results.
WRITTEN = {"docs/reproduction.md"}
PAGES = [
    page
    for page in sorted(
        [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob(".github/**/*.md")]
    )
    if page.parent.name != "reference" and page.relative_to(ROOT).as_posix() not in WRITTEN
]
FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)


def prose(text):
    """The lines outside of tables and of code, fenced or indented."""
    lines = FENCED.sub("", text).splitlines()
    return [line for line in lines if not line.startswith(("|", "    "))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_is_short_and_so_are_its_lines(page):
    text = page.read_text(encoding="utf-8")
    assert [line for line in prose(text) if len(line) > LONGEST_LINE] == []
    assert len(text.split()) <= MOST_WORDS


def test_lines_of_prose_are_told_from_tables_and_code():
    long = "x" * 200
    assert prose(f"one\n| {long} |\n```python\n{long}\n```\n    {long}\n{long}") == [
        "one",
        "",
        long,
    ]


#: Pages that show how something is done.
GUIDES = sorted(
    [
        *(ROOT / "docs" / "tutorials").glob("*.md"),
        *(
            ROOT / "docs" / f"{name}.md"
            for name in (
                "adaptive",
                "blackbox",
                "choosing",
                "getting-started",
                "how-it-works",
                "index",
                "jax",
                "own-model",
                "pictures",
                "policies",
                "workbench",
            )
        ),
    ]
)
PICTURE = re.compile(r"!\[([^]]*)\]\(([^)]+)\)")


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_guide_opens_with_a_picture(page):
    text = page.read_text(encoding="utf-8")
    first = PICTURE.search(text)
    assert first is not None
    assert text[: first.start()].count("\n") < 16


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pictures_are_there_and_say_what_they_show(page):
    for words, path in PICTURE.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / path).exists(), path
        assert len(words.split()) >= 4, path


def test_the_gallery_is_large_and_its_titles_say_what_pictures_show():
    """A title is also the text that stands for the picture where it cannot be seen."""
    scripts = list((ROOT / "docs" / "gallery").glob("*.py"))
    assert len(scripts) >= 15
    titles = [script.read_text(encoding="utf-8").splitlines()[0] for script in scripts]
    assert [title for title in titles if len(title.split()) < 4] == []


def test_pictures_of_guides_can_be_drawn_anew():
    scripts = {path.stem for path in (ROOT / "docs" / "gallery").glob("*.py")}
    assert set(PICTURES.values()) <= scripts
    kept = {path.name for path in (ROOT / "docs" / "images").iterdir()}
    assert kept - set(PICTURES) == {"own-hmm.png", "report.png"}


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_users_and_developers_have_environments_of_their_own():
    for target, environment, tools in (("demo", ".venv-user", False), ("test", ".venv", True)):
        steps = subprocess.run(
            ["make", "--dry-run", "--always-make", target],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert f"-m venv {environment}\n" in steps
        assert ("--group dev" in steps) is tools
        assert f'echo "Setting up {environment}' in steps


def test_the_readme_is_read_at_a_glance():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 120


def test_the_figures_of_the_readme_stand_among_those_measured():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    measured = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    rows = readme.partition("\n## Measured\n")[2].partition("\n## ")[0].splitlines()
    cells = [cell for row in rows if row.startswith("| ") for cell in row.split("|")[2:4]]
    figures = re.findall(r"−?\d[\d,.]*%?", " ".join(cells))
    assert len(figures) >= 12
    known = re.findall(r"−?\d[\d,.]*%?", measured.replace(", ", " "))
    assert [figure.rstrip(",") for figure in figures if figure.rstrip(",") not in known] == []
