"""A small corpus with known topics, a model of it, its report; a browser that opens pages."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from tempering import LatentDirichletAllocation
from tempering.report import collect
from tempering.workbench import TopicShares

N_TOPICS, N_WORDS, N_DOCUMENTS = 5, 120, 300

#: What a text could hold to break out of a page, or to run there.
HOSTILE = '</script><script>window.broken = 1</script><img src=x onerror="window.broken = 1">&amp;'


def make_corpus(seed=0):
    """Documents of mostly one topic each; each topic has words of its own beside common ones."""
    rng = np.random.default_rng(seed)
    own = np.kron(np.eye(N_TOPICS), np.ones(N_WORDS // N_TOPICS)) + 0.02
    topics = own * rng.gamma(1.0, size=own.shape)
    topics /= topics.sum(axis=1, keepdims=True)
    mixed = rng.dirichlet(np.full(N_TOPICS, 0.15), size=N_DOCUMENTS)
    lengths = rng.integers(20, 80, size=N_DOCUMENTS)
    counts = [rng.multinomial(n, p) for n, p in zip(lengths, mixed @ topics)]
    return sparse.csr_array(np.array(counts))


@pytest.fixture(scope="session")
def fitted():
    """The corpus with names and texts, a model with an ELBO at each pass, and held-out scores."""
    X = make_corpus()
    vocabulary = [f"w{v:03d}" for v in range(N_WORDS)]
    vocabulary[3] = "<b>&bold"
    texts = [" ".join(vocabulary[v] for v in X[[d]].indices) for d in range(N_DOCUMENTS)]
    model = LatentDirichletAllocation(
        n_components=N_TOPICS,
        tempering="annealing",
        update="variational",
        init="random",
        max_iter=8,
        batch_size=50,
        random_state=0,
    ).fit(X)
    return SimpleNamespace(
        X=X,
        model=model,
        vocabulary=vocabulary,
        names=[f"paper-{d}.txt" for d in range(N_DOCUMENTS)],
        texts=[f"{HOSTILE} {text}" for text in texts],
        validation=[(300 * (i + 1), -4.5 + 0.1 * i) for i in range(8)],
    )


@pytest.fixture(scope="session")
def shares():
    """Shares as draws: topic 1 rises surely over the years, topic 2 is absent from a group."""
    rng = np.random.default_rng(0)
    years = 40 * np.array([[2, 1, 2, 2, 2], [2, 2, 2, 2, 2], [2, 4, 2, 2, 2]])
    groups = 40 * np.array([[2, 2, 8, 2, 2], [2, 2, 0.001, 2, 2]])
    drawn = [
        np.stack([rng.dirichlet(row, size=40) for row in rows], axis=1) for rows in (years, groups)
    ]
    bins = [(year, year + 1) for year in (2020, 2021, 2022)]
    return SimpleNamespace(
        over_time=TopicShares(bins, np.array([90, 100, 110]), drawn[0]),
        by_group=TopicShares(["Herald", "<b>Times"], np.array([120, 180]), drawn[1]),
    )


@pytest.fixture(scope="session")
def report(fitted, shares):
    return collect(
        fitted.model,
        fitted.X,
        vocabulary=fitted.vocabulary,
        names=fitted.names,
        texts=fitted.texts,
        validation=fitted.validation,
        stability=[0.9, 0.2, 0.8, 0.7, 0.6],
        over_time=shares.over_time,
        by_group=shares.by_group,
        n_held_out=15,
        title=f"Papers {HOSTILE}",
    )


CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    None,
)


@pytest.fixture(scope="session")
def browser():
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    reason = "playwright is not installed: pip install playwright"
    playwright = pytest.importorskip("playwright.sync_api", reason=reason)
    with playwright.sync_playwright() as driver:
        # A container often runs as root, where Chromium's sandbox does not start.
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def new_page(browser, **options):
    return browser.new_context(reduced_motion="reduce", **options).new_page()


@pytest.fixture(scope="session")
def usual_page(browser):
    """A page for all tests: each opens its address anew, but the process behind it is warm."""
    return new_page(browser)


@pytest.fixture
def open_page(browser, usual_page):
    """Opens an address; after the test, the page must have been silent and alone."""
    opened = []

    def open_page(address, **options):
        page = new_page(browser, **options) if opened or options else usual_page
        # So that nothing is left of the last test, not even where its pointer was.
        page.goto("about:blank")
        page.mouse.move(0, 0)
        messages, requests = [], []
        listeners = {
            "console": lambda message: messages.append(message.text),
            "pageerror": lambda error: messages.append(str(error)),
            "request": lambda request: requests.append(request.url),
        }
        for event, listener in listeners.items():
            page.on(event, listener)
        opened.append((page, address, messages, requests, listeners))
        page.goto(address)
        page.wait_for_selector("html[data-ready]", state="attached")
        page.wait_for_selector("#topic-words .word")
        return page

    yield open_page
    for page, address, messages, requests, listeners in opened:
        assert page.evaluate("window.broken") is None
        page.evaluate("localStorage.clear()")
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        if page is not usual_page:
            page.context.close()
        assert messages == []
        assert {url.partition("#")[0] for url in requests} == {address.partition("#")[0]}
