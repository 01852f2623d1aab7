"""The version has one place; what must repeat it says the same."""

import re
from pathlib import Path

import tempering

ROOT = Path(__file__).parents[2]


def test_the_changelog_and_the_citation_name_the_version():
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    cited = re.search(r"^version: (\S+)", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    assert newest is not None
    assert cited is not None
    assert (newest[1], cited[1]) == (tempering.__version__, tempering.__version__)
