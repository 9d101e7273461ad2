"""The side bar's field leads to a topic or a group by its name, and to a list where several have it in theirs."""

from __future__ import annotations

from pathlib import Path

from .helpers.browsing import Open, on_both
from .test_pages import OFFSETS_AT_ONCE


@on_both
async def test_names_lead_to_topics_and_groups(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path, **OFFSETS_AT_ONCE) as browser:
        for name in ("orders", "orders-test", "prices"):
            await browser.create(name)
        await browser.put_offset("billing", "orders", 0, 0)
        await browser.put_offset("orders", "orders", 0, 0)
        await browser.renewed()
        for text, place in (
            ("orders", "/topics/orders"),
            ("+orders-test+", "/topics/orders-test"),
            ("PRI", "/topics/prices"),
            ("bill", "/group?id=billing"),
        ):
            answer = await browser.get(f"/find?q={text}")
            assert (answer.status, answer.headers.get("location")) == (303, place), text
        several = (await browser.get("/find?q=ord")).page
        assert several.links["orders-test"] == "/topics/orders-test"
        assert {"/topics/orders", "/group?id=orders"} <= {*several.addresses()}
        for text in ("", "nothing"):
            assert "No topic or group has that in its name." in (await browser.get(f"/find?q={text}")).page.text
        assert "/find" in str((await browser.get("/")).page.elements)
