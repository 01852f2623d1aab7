"""The map of many topics in a browser: it zooms, and no two names lie on each other."""

import numpy as np
import pytest

from tempering import LatentDirichletAllocation
from tempering.report import collect, write_report

SHOWN = """() => [...document.querySelectorAll('#map text')]
    .filter((text) => text.getAttribute('visibility') === 'visible')
    .map((text) => { const box = text.getBoundingClientRect();
                     return [box.left, box.top, box.right, box.bottom]; })"""

#: Without the lines around them.
BOXES = """(all) => all.map((node) => { const box = node.getBoundingClientRect();
    return [box.left + 1, box.top + 1, box.right - 1, box.bottom - 1]; })"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.multinomial(20, rng.dirichlet(np.full(200, 0.05), 200))
    model = LatentDirichletAllocation(150, max_iter=1, random_state=0).fit(X)
    path = tmp_path_factory.mktemp("map") / "report.html"
    write_report(collect(model, vocabulary=[f"word{v}" for v in range(200)]), path)
    return path.as_uri()


def place(page, topic):
    bubble = page.locator(f"#map .bubble[data-topic='{topic}']")
    return np.array([float(bubble.get_attribute(name)) for name in ("cx", "cy")])


def collisions(boxes):
    left, top, right, bottom = np.array(boxes).T
    across = (left[:, None] < right) & (left < right[:, None])
    along = (top[:, None] < bottom) & (top < bottom[:, None])
    return int(np.triu(across & along, 1).sum())


def test_names_stay_apart_at_every_zoom(open_page, address):
    page = open_page(address)
    distances = []
    for _ in range(4):
        boxes = page.evaluate(SHOWN)
        assert boxes
        assert collisions(boxes) == 0
        distances.append(np.linalg.norm(place(page, 0) - place(page, 1)))
        page.click("#map-in")
    np.testing.assert_allclose(distances, distances[0] * 2.0 ** np.arange(4), rtol=1e-6)
    assert page.locator("#map .bubble-words[visibility=visible]").count() > 0
    page.click("#map-whole")
    assert page.locator("#map-out").is_disabled()
    assert np.linalg.norm(place(page, 0) - place(page, 1)) == pytest.approx(distances[0])
    # Words lie on no other bubble there.
    bubbles = page.locator("#map .bubble").evaluate_all(BOXES)
    for box in page.locator("#map .bubble-words[visibility=visible]").evaluate_all(BOXES):
        assert max(collisions([box, bubble]) for bubble in bubbles) == 0


@pytest.mark.slow
def test_keys_and_wheel_zoom_and_what_is_zoomed_can_be_dragged(open_page, address):
    page = open_page(address)
    chosen = page.locator("#map .bubble[tabindex='0']")
    topic, before = int(chosen.get_attribute("data-topic")), float(chosen.get_attribute("r"))
    chosen.press("+")
    assert float(chosen.get_attribute("r")) == pytest.approx(2**0.5 * before)
    box = page.locator("#map svg").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    # 2 by the key, 1.25 times that by the wheel.
    wanted = 2.5**0.5 * before
    page.wait_for_function(
        "wanted => Math.abs(document.querySelector('#map .bubble[tabindex=\"0\"]')"
        ".getAttribute('r') - wanted) < 1e-6",
        arg=wanted,
    )
    far = place(page, topic)
    page.mouse.down()
    page.mouse.move(x - 12, y, steps=3)
    page.mouse.move(x + 12, y, steps=3)
    page.mouse.up()
    # It may be at its end on one side, not on both.
    assert not np.array_equal(far, place(page, topic))
    # What was dragged was not chosen.
    assert page.get_attribute("#map .bubble[aria-pressed=true]", "data-topic") == str(topic)
