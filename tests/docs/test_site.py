"""The site builds without a warning, its links lead somewhere, and its search finds."""

import functools
import os
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    None,
)


@pytest.mark.slow
def test_the_site(tmp_path):
    """One test, as its parts share the site, which takes a while to build."""
    for package in ("mkdocs", "material", "mkdocstrings", "latex2mathml"):
        pytest.importorskip(
            package, reason="the site's tools are missing: pip install --group docs"
        )
    site = tmp_path / "site"
    build(site)
    pages = {path: read_page(path) for path in site.rglob("*.html")}
    assert len(pages) > 25
    check_formulas(pages)
    check_nothing_is_fetched(pages)
    check_links(site, pages)
    if CHROMIUM is None:
        pytest.skip("all else is right, but the search wants Chromium: apt-get install chromium")
    check_search(site)


def build(site):
    """As `make docs` does, but for the code of the pages, which other tests run."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)],
        cwd=ROOT,
        env={**os.environ, "TEMPERING_DOCS_EXECUTE": "false", "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


class Page(HTMLParser):
    """The places in a page, and what it refers to."""

    def __init__(self):
        super().__init__()
        self.anchors, self.links, self.loaded, self.formulas = set(), [], [], 0

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors.update(values[name] for name in ("id", "name") if values.get(name))
        self.formulas += tag == "math"
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        elif values.get("src"):
            self.loaded.append(values["src"])
        elif tag == "link" and values.get("rel") != "canonical" and values.get("href"):
            self.loaded.append(values["href"])


def read_page(path):
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def check_formulas(pages):
    texts = {path.name: path.read_text(encoding="utf-8") for path in pages}
    assert sum(page.formulas for page in pages.values()) > 20
    assert [name for name, text in texts.items() if "arithmatex" in text] == []


def check_nothing_is_fetched(pages):
    """Scripts, styles, fonts and pictures all come with the site."""
    loaded = {where for page in pages.values() for where in page.loaded}
    assert [where for where in loaded if urlsplit(where).netloc] == []


def check_links(site, pages):
    """Every link inside the site has a page, and a place in it, to lead to."""
    broken = []
    for path, page in pages.items():
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            start = site if parts.path.startswith("/") else path.parent
            target = (start / unquote(parts.path.lstrip("/"))).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            known = not parts.fragment or target.suffix != ".html" or target not in pages
            if not target.exists() or (
                not known and unquote(parts.fragment) not in pages[target].anchors
            ):
                broken.append((path.name, link))
    assert broken == []


@contextmanager
def served(site):
    """The site's address on this machine."""

    class Silent(SimpleHTTPRequestHandler):
        def log_message(self, format, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def check_search(site):
    """A headless browser searches for "temperature", finds it, and opens what it found."""
    reason = "all else is right, but the search wants playwright: pip install playwright"
    playwright = pytest.importorskip("playwright.sync_api", reason=reason)
    with served(site) as address, playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = chromium.new_page()
        messages, requests = [], []
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address)
        page.locator("input[name=query]").click()
        page.keyboard.type("temperature")
        # Results change while the word is typed.
        found = page.locator(".md-search-result__link", has_text="Temperature policies").first
        found.wait_for()
        found.click()
        page.wait_for_url("**h=temperature*")
        assert "temperature" in page.inner_text("article").lower()
        chromium.close()
    assert messages == []
    # A browser asks for the site's own files, and reads what the page holds as data.
    assert [url for url in requests if not url.startswith((address, "data:", "blob:"))] == []
