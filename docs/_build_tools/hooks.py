"""What the site's build adds to mkdocs: outputs of the pages' code, the gallery, formulas."""

from __future__ import annotations

import logging
import re
import sys
import tempfile
from pathlib import Path

import latex2mathml.converter
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))
import gallery
import reference
from run_blocks import blocks, run_blocks

GALLERY_MARK = "<!-- gallery -->"
FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)
#: A name or an option in running text, short enough to stay on one line.
NAME = re.compile(r"<code>(?=[^<\s]{1,30}</code>)")
#: Links to the lab from `docs/`, and back: in the site, the lab lies among the pages.
TO_LAB, FROM_LAB = re.compile(r"\]\(\.\./((?:\.\./)*lab/)"), re.compile(r"\]\(\.\./docs/")
log = logging.getLogger("mkdocs.plugins.tempering")


def on_files(files, config):
    """Entries of the lab become pages: linked, but neither in the navigation nor in the search."""
    root = Path(config.docs_dir).parent
    for entry in sorted(root.glob("lab/*.md")):
        uri = entry.relative_to(root).as_posix()
        files.append(File.generated(config, uri, content=entry.read_text(encoding="utf-8")))


def on_page_markdown(markdown, page, config, files):
    """Run what is to be run, and put what it shows below it."""
    root = Path(config.docs_dir).parent
    execute = config.extra["execute"]
    if page.file.src_uri.startswith("lab/"):
        page.meta["search"] = {"exclude": True}
        return FROM_LAB.sub("](../", markdown)
    markdown = TO_LAB.sub(r"](\1", markdown)
    if GALLERY_MARK in markdown:
        text, pictures = gallery.page(root / "docs" / "gallery", execute)
        add_files(config, files, "gallery", pictures)
        return markdown.replace(GALLERY_MARK, text)
    markdown = reference.expand(markdown)
    if page.meta.get("execute") and execute:
        log.info("Running the code of %s", page.file.src_uri)
        return with_outputs(markdown, page, config, files)
    return markdown


def on_page_content(html, page, config, files):
    """Formulas as MathML, which browsers draw without a script; names that are not broken."""
    return FORMULA.sub(as_mathml, NAME.sub('<code class="name">', html))


def as_mathml(formula: re.Match[str]) -> str:
    latex = formula["latex"].replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">")
    display = "block" if formula["tag"] == "div" else "inline"
    return latex2mathml.converter.convert(latex.strip(), display=display)


def with_outputs(markdown, page, config, files):
    """The page with what each block printed and drew after it."""
    with tempfile.TemporaryDirectory() as directory:
        shown = run_blocks(markdown, Path(directory), page.file.src_uri)
    stem = Path(page.file.src_uri).stem
    parts, end, pictures = [], 0, {}
    for block, own in zip(blocks(markdown), shown):
        parts.append(markdown[end : block.end()])
        end = block.end()
        if own.missing:
            log.warning("%s: %s is not installed, so a block shows nothing", stem, own.missing)
        if own.text.strip():
            parts.append(f'\n\n```text title="Output"\n{own.text.rstrip()}\n```\n')
        for png in own.figures:
            name = f"{stem}-{len(pictures) + 1}.png"
            pictures[name] = png
            parts.append(f"\n\n![What the code above draws](images/{name})\n")
    folder = (Path(page.file.src_uri).parent / "images").as_posix()
    add_files(config, files, folder, pictures)
    return "".join([*parts, markdown[end:]])


def add_files(config, files, folder, contents):
    """Files that are made by the build, beside those of the sources."""
    for name, content in contents.items():
        uri = f"{folder}/{name}"
        if uri in files.src_uris:
            files.remove(files.src_uris[uri])
        files.append(File.generated(config, uri, content=content))
