"""Pages as Chromium shows them; skipped where it or playwright is not installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from report_scenes import PLAN, hostile, income, ratings

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser without a window."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        try:
            opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        except playwright.Error:
            pytest.skip("no Chromium")
        yield opened
        opened.close()


SCENES = {
    "income": lambda dpfit: (income(dpfit), "income.ledger.json"),
    "ratings": lambda dpfit: (ratings(dpfit),),
    "hostile": hostile,
    "plan": lambda dpfit: PLAN[1:],
}
BACKGROUNDS = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("scheme", BACKGROUNDS)
@pytest.mark.parametrize("width", [320, 1100])
def test_a_page_fits_and_asks_for_nothing(
    dpfit: Any, browser: Any, scene: str, scheme: str, width: int
) -> None:
    """As wide as the screen, text no smaller than 11 pixels, nothing fetched, run or refused."""
    args = SCENES[scene](dpfit)
    outcome = dpfit.here("report", *args)
    assert outcome.status == 0, outcome.err
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    told: list[str] = []
    page.on("request", lambda request: told.append(request.url))
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    address = Path("report.html").resolve().as_uri()
    page.goto(address)
    assert told == [address]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate("window.pwned") is None
    shown = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(shown) == BACKGROUNDS[scheme]
    sizes = """[...document.querySelectorAll("figure svg text")].map(text => {
        const svg = text.ownerSVGElement;
        const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
        return scale * parseFloat(getComputedStyle(text).fontSize);
    })"""
    assert min(page.evaluate(sizes)) >= 11.0
    inside = """[...document.querySelectorAll("figure svg")].every(svg => {
        const frame = svg.getBoundingClientRect();
        return [...svg.querySelectorAll("text")].every(text => {
            const box = text.getBoundingClientRect();
            return box.left > frame.left - 1 && box.right < frame.right + 1
                && box.top > frame.top - 1 && box.bottom < frame.bottom + 1;
        });
    })"""
    assert page.evaluate(inside)
    assert len(page.screenshot(full_page=True)) > 20_000
    page.emulate_media(media="print")
    assert page.evaluate(shown) == BACKGROUNDS["light"]
    page.close()
