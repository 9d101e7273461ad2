"""Every page, in Chromium, at two sizes, light and dark: what axe finds that keeps people out who see little, or use no mouse."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import SIZES
from .every_page import FIRST, every_page, kind_of
from .served import Served

pytest.importorskip("playwright.sync_api", reason="playwright is not installed (tools/setup.sh test)")
axe = pytest.importorskip("axe_playwright_python.base", reason="axe is not installed (tools/setup.sh test)")
pytestmark = pytest.mark.slow
FAILING = ("serious", "critical")
RUN = """new Promise(requestAnimationFrame).then(() => axe.run({resultTypes: ["violations"]})).then(found => found.violations.map(
    one => ({id: one.id, impact: one.impact, help: one.help, nodes: one.nodes.map(node => node.html).slice(0, 3)})))"""


def test_axe_finds_nothing_serious(desk: Any, served: Served) -> None:
    found = []
    pages = every_page(served.console)
    assert {kind_of(address) for address in FIRST} <= pages.keys()
    page = desk.new_page()
    for address in pages.values():
        page.goto(address)
        page.evaluate(axe.AXE_SCRIPT)
        for size, scheme in SIZES.values():
            page.set_viewport_size(size)
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            found += [
                f"{address} ({scheme}, {size['width']} wide): {one}"
                for one in page.evaluate(RUN)
                if one["impact"] in FAILING
            ]
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= size["width"], f"{address} is {wide} wide"
    assert not found, "\n".join(found)
