"""A headless Chromium opens the report and uses it: no error, and nothing is fetched."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tempering.report import collect, write_report
from tempering.report.tables import share_table
from tempering.workbench import hierarchy


@pytest.fixture(scope="module")
def address(report, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(report, path)
    return path.as_uri()


def shown_words(page):
    return page.locator("#topic-words .word").evaluate_all("all => all.map(w => w.dataset.word)")


def open_topic(page):
    return int(re.match(r"Topic (\d+):", page.inner_text("#detail-title"))[1])


def test_charts_are_drawn(open_page, address, fitted, report):
    page = open_page(address)
    for name in ("temperature", "validation", "elbo"):
        points = page.get_attribute(f"polyline.{name}", "points").split()
        assert len(points) == len(report.curves[name])
        heights = np.array([float(point.split(",")[1]) for point in points])
        values = [value for _, value in report.curves[name]]
        # Up on the page is down in its coordinates.
        assert np.corrcoef(heights, values)[0, 1] < -0.999
    assert page.locator("#map .bubble").count() == len(report.topics)
    assert page.locator(".column").count() == len(report.temperatures["counts"])
    tallest = page.locator(".column").evaluate_all("all => all.map(c => +c.getAttribute('height'))")
    assert np.argmax(tallest) == np.argmax(report.temperatures["counts"])
    assert page.locator("#topic-words .word").count() == report.facts["top_words"]
    assert "documents, 15 of them held out\n315" in page.inner_text("#facts")
    assert "'annealing'" in page.text_content("#parameters")


def test_topics_are_listed_by_prevalence(open_page, address, report):
    page = open_page(address)
    numbers = page.locator(".topic-row .number").all_inner_texts()
    assert [int(number) for number in numbers] == [topic["id"] for topic in report.topics]
    page.select_option("#topic-order", "id")
    numbers = page.locator(".topic-row .number").all_inner_texts()
    assert [int(number) for number in numbers] == sorted(topic["id"] for topic in report.topics)


def test_pointing_shows_values(open_page, address, report):
    page = open_page(address)
    chart = page.locator(".figure-temperature svg")
    chart.hover(position={"x": 56, "y": 80})
    seen, temperature = report.curves["temperature"][0]
    readout = page.inner_text(".figure-temperature .readout")
    assert f"T = {temperature:.3f}" in readout
    assert f"{seen:,.0f} documents" in readout
    page.locator("#map .bubble").first.hover()
    assert f"Topic {report.topics[0]['id']}" in page.inner_text("#tooltip")
    page.locator("#topic-words .word").first.hover()
    assert "uses are in this topic" in page.inner_text("#tooltip")
    count = report.temperatures["counts"][0]
    page.locator(".column-hit").first.hover()
    assert page.inner_text("#document-parts .readout").startswith(f"{count:,} document")


def test_the_slider_reorders_the_words(open_page, address, fitted):
    page = open_page(address)
    k = open_topic(page)
    components = fitted.model.components_
    topics = components / components.sum(axis=1, keepdims=True)
    sizes = components.sum(axis=1) - components.shape[1] * fitted.model.topic_word_prior_
    marginal = sizes / sizes.sum() @ topics
    slider = page.locator("#relevance")
    orders = []
    # Home and End are λ = 0 and 1; three steps to the right of 0 are λ = 0.15.
    for keys, weight in [(["End"], 1.0), (["Home"], 0.0), (["ArrowRight"] * 3, 0.15)]:
        for key in keys:
            slider.press(key)
        assert page.inner_text("#relevance-value") == f"{weight:.2f}"
        order = [fitted.vocabulary.index(word) for word in shown_words(page)]
        score = np.log(topics[k]) - (1 - weight) * np.log(marginal)
        np.testing.assert_allclose(score[order], np.sort(score)[::-1][: len(order)], atol=1e-3)
        orders.append(order)
    assert orders[0] != orders[1] != orders[2]


def test_search_finds_a_word_and_its_topics(open_page, address, fitted, report):
    page = open_page(address)
    word = report.topics[-1]["words"][0]
    text = report.words["text"][word]
    page.fill("#search", text.upper())
    assert page.locator("#search-results .found").all_inner_texts()[0] == text
    chips = page.locator("#search-results li").first.locator(".chip")
    assert chips.count() == len(report.words["topics"][word]) / 2
    chips.first.click()
    assert open_topic(page) == report.words["topics"][word][0]
    page.fill("#search", "no such word")
    assert "No word here holds" in page.inner_text("#search-count")
    assert page.locator("#search-results li").count() == 0


def test_a_topic_opens_its_documents(open_page, address, report):
    page = open_page(address)
    for topic in report.topics:
        page.click(f".topic-row[data-topic='{topic['id']}']")
        assert open_topic(page) == topic["id"]
        names = page.locator("#topic-documents .name").all_inner_texts()
        assert names == [report.documents[i]["name"] for i in topic["documents"]]
        bubble = page.locator("#map .bubble[aria-pressed=true]")
        assert bubble.get_attribute("data-topic") == str(topic["id"])
    page.locator("#map .bubble").nth(1).click()
    assert open_topic(page) == report.topics[1]["id"]


def test_text_is_shown_as_it_is(open_page, address, report):
    page = open_page(address)
    first = page.locator("#topic-documents .text").first.inner_text()
    assert first == report.documents[report.topics[0]["documents"][0]]["text"]
    assert first.startswith("</script><script>")
    assert page.inner_text("h1") == report.title == page.title()
    page.fill("#search", "<b>")
    assert page.inner_text("#search-results .found") == "<b>&bold"


@pytest.mark.slow
def test_a_link_opens_its_topic(open_page, address, report):
    page = open_page(address)
    page.click(".topic-row >> nth=2")
    link = page.url
    assert link == f"{address}#topic-{report.topics[2]['id']}"
    assert page.get_attribute("#detail-link", "href") == link.removeprefix(address)
    other = open_page(link)
    assert open_topic(other) == report.topics[2]["id"]
    other.evaluate(f"location.hash = '#topic-{report.topics[4]['id']}'")
    other.wait_for_function(f"document.title && location.hash.endsWith('{report.topics[4]['id']}')")
    assert open_topic(other) == report.topics[4]["id"]


def test_the_tree_is_cut_into_groups(open_page, address, fitted):
    page = open_page(address)
    tree = hierarchy(fitted.model)
    slider = page.locator("#tree-groups")
    slider.press("Home")
    for n_groups in range(1, len(tree.labels) + 1):
        assert page.inner_text("#tree-groups-value") == str(n_groups)
        shown = page.locator("#tree-list li").evaluate_all(
            "all => all.map(li => [...li.querySelectorAll('.chip b')].map(b => +b.textContent))"
        )
        assert sorted(map(sorted, shown)) == tree.cut(n_groups)
        slider.press("ArrowRight")
    page.locator("#tree-picture .leaf").nth(1).press("Enter")
    leaf = page.locator("#tree-picture .leaf.chosen")
    assert open_topic(page) == int(leaf.get_attribute("data-topic"))


def test_shares_are_shown_with_their_intervals(open_page, address, shares):
    page = open_page(address)
    tables = page.locator("#share-tables table")
    assert tables.count() == 2
    # What differs most, and surely, comes first.
    first = [tables.nth(i).locator("tbody tr").first.get_attribute("data-topic") for i in (0, 1)]
    assert first == ["1", "2"]
    cells = tables.nth(0).locator("tr[data-topic='1'] td").all_inner_texts()
    assert cells == [f"{100 * mean:.1f}" for mean in shares.over_time.mean()[:, 1]]
    assert tables.nth(1).locator("thead th").all_inner_texts() == ["topic", "Herald", "<b>Times"]
    tables.nth(0).locator("tr[data-topic='1'] button").click()
    assert open_topic(page) == 1
    low, high = shares.over_time.ratio((2022, 2023), (2020, 2021))[1]
    readout = page.locator("#topic-shares .readout").first
    assert readout.inner_text() == (
        f"{low:.2g} to {high:.2g} times as common in \u20682022\u2069 as in \u20682020\u2069"
    )
    page.locator("#topic-shares svg").first.press("ArrowRight")
    low, high = shares.over_time.interval()[0, 1]
    assert f"({low:.1%} to {high:.1%}) of 90 documents" in readout.inner_text()
    tables.nth(1).locator("tr[data-topic='2'] button").click()
    low, high = shares.by_group.ratio("Herald", "<b>Times")[2]
    told = re.fullmatch(
        r"at least ([\d,]+) times as common in \u2068Herald\u2069 as in \u2068<b>Times\u2069",
        page.locator("#topic-shares .readout").nth(1).inner_text(),
    )
    assert high > 1000  # which says no more than that it is absent there
    assert int(told[1].replace(",", "")) == pytest.approx(low, rel=0.05)


LEFT_EDGES = """(node, texts) => texts.map((text) => {
  const range = document.createRange();
  const last = node.lastChild;
  range.setStart(last, last.data.indexOf(text));
  range.setEnd(last, last.data.indexOf(text) + text.length);
  return range.getBoundingClientRect().left;
})"""


def test_shares_that_are_alike_by_themselves_are_not_compared(open_page, report, shares, tmp_path):
    groups = share_table(shares.by_group, "", 5, in_order=False)
    groups["contrasts"] = [(1, 1, 0.9, 1.1)] * 5
    write_report(replace(report, by_group=groups), tmp_path / "report.html")
    page = open_page((tmp_path / "report.html").as_uri())
    readout = page.locator("#topic-shares .readout").nth(1)
    assert readout.inner_text() == "Nothing to compare"


def test_names_from_right_to_left_leave_the_figures_beside_them(
    open_page, report, shares, tmp_path
):
    """Else "name: 5.0% (4.1% to 5.8%)" is shown with its numbers in another order."""
    name = "كتاب, مدرسة"
    topics = [{**topic, "label": name} for topic in report.topics]
    groups = share_table(replace(shares.by_group, names=[name, "B"]), "", 5, in_order=False)
    write_report(replace(report, topics=topics, by_group=groups), tmp_path / "report.html")
    page = open_page((tmp_path / "report.html").as_uri())
    page.locator("#topic-shares svg").last.press("ArrowRight")
    for selector in (".chip", "#topic-shares .readout >> nth=1"):
        node = page.locator(selector).first
        figures = re.findall(r"[\d.]+%", node.inner_text())
        edges = node.evaluate(LEFT_EDGES, [name, *figures])
        assert edges == sorted(edges)


def test_documents_are_searched(open_page, address, report):
    page = open_page(address)
    text = report.words["text"][report.topics[0]["words"][-1]]
    assert not page.is_visible("#document-more")
    page.fill("#document-search", text.upper())
    holding = [d for d in report.documents if text in f"{d['name']} {d['text']}"]
    assert page.inner_text("#document-count").startswith(f"{len(holding)} document")
    names = page.locator("#document-results .name").all_inner_texts()
    assert names == [d["name"] for d in holding[:10]]
    marked = page.locator("#document-results .wanted").all_inner_texts()
    assert marked
    assert set(marked) == {text}
    k = report.topics[1]["id"]
    page.fill("#document-search", f"topic:{k}")
    best = max(report.documents, key=lambda d: dict(d["topics"]).get(k, 0))
    assert page.locator("#document-results .name").first.inner_text() == best["name"]


def test_words_have_the_colour_of_their_topic(open_page, address, report, fitted):
    page = open_page(address)
    page.click(f".topic-row[data-topic='{report.topics[0]['id']}']")
    topic = report.topics[0]["id"]
    marks = page.locator("#topic-documents mark.topic-0").all_inner_texts()
    parameters = fitted.model.components_
    share = parameters[topic] / parameters[topic].sum()
    usual = fitted.X.sum(axis=0) / fitted.X.sum()
    marked = [fitted.vocabulary.index(word) for word in marks]
    assert len(marked) > 10
    assert np.all(share[marked] > 1.4 * usual[marked])
    texts = " ".join(page.locator("#topic-documents .text").all_inner_texts())
    plain = [v for v in range(120) if fitted.vocabulary[v] in texts and v not in marked]
    assert len(plain) > 10
    assert np.median(share[plain] / usual[plain]) < 1


def test_the_hottest_documents_come_first(open_page, address, report):
    page = open_page(address)
    hottest = [report.documents[i]["name"] for i in report.temperatures["hottest"]]
    assert page.locator(".hottest .name").all_inner_texts() == hottest[:10]
    page.get_by_role("button", name="Show 10 more").click()
    assert page.locator(".hottest .name").all_inner_texts() == hottest[:20]


def test_the_keyboard_is_enough(open_page, address, report):
    page = open_page(address)
    ids = [topic["id"] for topic in report.topics]
    page.locator("#map .bubble[tabindex='0']").press("ArrowRight")
    assert open_topic(page) == ids[1]
    page.locator(".topic-row").nth(1).press("ArrowDown")
    page.keyboard.press("Enter")
    assert open_topic(page) == ids[2]
    page.locator(".figure-validation svg").press("ArrowLeft")
    seen, score = report.curves["validation"][-2]
    assert f"{abs(score):.4f} nats a word · {seen:,.0f}" in page.inner_text(
        ".figure-validation .readout"
    )
    page.locator("#topic-words .word").first.press("Enter")
    assert page.input_value("#search") == shown_words(page)[0]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(open_page, address, scheme):
    page = open_page(address, color_scheme=scheme)

    def is_dark():
        style = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return max(map(int, re.findall(r"\d+", style)[:3])) < 128

    assert is_dark() == (scheme == "dark")
    page.click("#theme")
    assert is_dark() != (scheme == "dark")
    page.reload()
    assert is_dark() != (scheme == "dark")
    page.click("#theme")
    assert is_dark() == (scheme == "dark")


def test_the_map_explains_its_numbers(open_page, address):
    """Before a click: the words of topics stand beside their bubbles where there is room."""
    page = open_page(address)
    assert "numbers are those of the list" in page.inner_text("#map-hint")
    assert page.locator("#map .bubble-words[visibility=visible]").count() > 0


def test_a_word_that_is_common_everywhere_leaves_room_for_the_others(open_page, report, tmp_path):
    words = {**report.words, "probability": list(report.words["probability"])}
    topic = report.topics[0]
    words["probability"][topic["words"][0]] = 0.9
    write_report(replace(report, words=words), tmp_path / "report.html")
    page = open_page((tmp_path / "report.html").as_uri())
    page.locator("#relevance").press("End")  # the most probable words, common or not
    bars = page.locator("#topic-words .own").evaluate_all(
        "all => all.map(b => b.width.baseVal.value)"
    )
    width = page.locator("#topic-words svg").evaluate("picture => picture.viewBox.baseVal.width")
    assert max(bars) > 0.25 * width
    assert page.locator("#topic-words .cut[visibility=visible]").count() >= 1
    assert page.is_visible("#cut-hint")


def test_the_title_is_shown_on_a_phone(open_page, address, report):
    page = open_page(address, viewport={"width": 400, "height": 800})
    page.locator("#documents").scroll_into_view_if_needed()
    assert page.inner_text(".brand") == report.title
    box = page.locator(".brand").bounding_box()
    assert box["y"] >= 0
    assert box["width"] > 100


def test_it_fits_on_a_phone(open_page, address):
    page = open_page(address, viewport={"width": 360, "height": 740}, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    links = page.locator(".bar nav a").evaluate_all("all => all.map((a) => a.offsetHeight)")
    assert max(links) < 36  # no word is broken
    page.locator(".topic-row").nth(2).tap()
    top = page.locator("#detail").bounding_box()["y"]
    assert 0 <= top < 200


def test_a_model_alone_is_shown(open_page, fitted, tmp_path):
    write_report(collect(fitted.model), tmp_path / "report.html")
    page = open_page((tmp_path / "report.html").as_uri())
    assert "without the documents" in page.inner_text("#documents")
    assert page.locator("#topic-order option").count() == 2
    assert page.is_visible("#tree")
    assert not page.is_visible("#shares")
    assert not page.is_visible("#document-search")


@pytest.mark.slow
def test_the_report_of_the_demo_works(open_page, tmp_path, monkeypatch):
    """The real one, of the docstrings on this machine."""
    from typer.testing import CliRunner

    from tempering.cli.app import app

    monkeypatch.setenv("TEMPERING_CACHE", str(tmp_path / "cache"))
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "demo")])
    assert result.exit_code == 0, result.output
    page = open_page((tmp_path / "demo" / "report.html").as_uri())
    for name in ("temperature", "validation"):
        assert len(page.get_attribute(f"polyline.{name}", "points").split()) > 10
    before = shown_words(page)
    page.locator("#relevance").press("Home")
    assert shown_words(page) != before
    page.fill("#search", "matrix")
    assert "matrix" in page.locator("#search-results .found").all_inner_texts()
    page.locator("#search-results li").first.locator(".chip").first.click()
    assert page.locator("#topic-documents li").count() > 0
