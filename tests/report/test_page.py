"""The page as text: whole, self-contained, and safe whatever the data say."""

import json
import re
from html.parser import HTMLParser

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tempering import LatentDirichletAllocation
from tempering.corpus import Corpus
from tempering.report import collect, write_report
from tempering.report.page import embedded_json, render


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the text of its scripts."""

    def __init__(self, page):
        super().__init__()
        self.found, self.scripts, self.in_script = [], [], False
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag == "script":
            self.scripts.append("")
            self.in_script = True

    def handle_endtag(self, tag):
        self.in_script = self.in_script and tag != "script"

    def handle_data(self, data):
        if self.in_script:
            self.scripts[-1] += data


@given(st.lists(st.text() | st.text("<>&/script!-\u2028\u2029") | st.integers()))
def test_embedded_json_is_the_value_and_cannot_end_a_script(value):
    text = embedded_json(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&\u2028\u2029")


def test_the_page_holds_the_data_and_nothing_that_they_could_add(report):
    page = Elements(render(report))
    assert len(page.scripts) == 2
    assert json.loads(page.scripts[0]) == json.loads(json.dumps(vars(report)))
    assert not any(tag in ("img", "link", "iframe") for tag, _ in page.found)
    handlers = [name for _, attributes in page.found for name in attributes if name[:2] == "on"]
    assert handlers == []


def test_the_page_refers_to_nothing_outside(report):
    text = render(report)
    assert set(re.findall(r"https?://[^\s'\"]+", text)) == {"http://www.w3.org/2000/svg"}
    page = Elements(text)
    targets = [v for _, a in page.found for k, v in a.items() if k in ("src", "href")]
    assert targets
    assert all(target.startswith("#") for target in targets)
    assert "innerHTML" not in page.scripts[1]
    assert "default-src 'none'" in text


def test_text_that_looks_like_a_place_of_the_template_stays(fitted):
    page = render(collect(fitted.model, title="{{script}} and {{nothing}}"))
    assert "<title>{{script}} and {{nothing}}</title>" in page


def test_half_characters_are_written(fitted, tmp_path):
    report = collect(fitted.model, title="broken \udcff name")
    write_report(report, tmp_path / "report.html")
    assert "broken ? name" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_failed_write_leaves_the_old_page(report, tmp_path):
    path = tmp_path / "report.html"
    path.mkdir()
    with pytest.raises(OSError, match=re.escape(str(path))):
        write_report(report, path, overwrite=True)
    assert list(tmp_path.iterdir()) == [path]


def test_a_page_is_replaced_only_if_asked(report, fitted, tmp_path):
    path, other = tmp_path / "report.html", tmp_path / "other.html"
    path.write_text("mine")
    other_model = LatentDirichletAllocation(2, max_iter=1, random_state=0).fit(fitted.X)
    write_report(other_model, other)
    for data in (report, fitted.model):
        for foreign in (path, other):
            before = foreign.read_text()
            with pytest.raises(FileExistsError, match=r"not a report of this fit: choose another"):
                write_report(data, foreign)
            assert foreign.read_text() == before
    write_report(report, path, overwrite=True)
    for data in (report, fitted.model):
        with pytest.raises(FileExistsError, match=r"exists already: pass overwrite=True"):
            write_report(data, path)
    assert path.read_text().startswith("<!doctype html>")


def test_a_model_is_as_good_as_what_was_collected_of_it(fitted, tmp_path):
    counts, words, names = fitted.X, fitted.vocabulary, fitted.names
    corpus = Corpus(counts, words, names, fitted.texts)
    write_report(fitted.model, tmp_path / "a.html", corpus, title="Papers")
    told = {"vocabulary": words, "names": names, "texts": fitted.texts}
    write_report(collect(fitted.model, counts, **told, title="Papers"), tmp_path / "b.html")
    assert (tmp_path / "a.html").read_text() == (tmp_path / "b.html").read_text()
    with pytest.raises(ValueError, match="X, title belongs to collect"):
        write_report(collect(fitted.model), tmp_path / "c.html", corpus, title="Papers")


def test_a_corpus_of_other_words_is_refused(fitted):
    model = LatentDirichletAllocation(2, max_iter=1, random_state=0)
    model.fit(Corpus(fitted.X, fitted.vocabulary))
    others = Corpus(fitted.X, ["zebra", *fitted.vocabulary[1:]])
    with pytest.raises(ValueError, match="column 0 of the corpus is 'zebra', but 'w000'"):
        collect(model, others)
