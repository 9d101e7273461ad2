"""Offsets of a group moved after a look at what they would be, in each way; a group deleted by typing its name."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest

from ottla.base.wording import counted
from ottla.group_coordinator.committed_offsets import each_commit
from ottla.wire.records import Record

from .helpers.browsing import Browsing, browsing

WRITES = {"console.allow.writes": "true", "offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "1"}
GROUP = "a/b ü&"


async def filled(browser: Browsing) -> None:
    """Two partitions of ten records, a second apart; the group has read five of one."""
    await browser.create("orders", 2)
    await browser.create("prices")
    for number in (0, 1):
        records = [Record(timestamp=1_700_000_000_000 + 1000 * each, value=b"v") for each in range(10)]
        browser.put("orders", *records, number=number)
    await browser.put_offset(GROUP, "orders", 0, 5)


def target(**asked: str) -> str:
    return f"/reset-offsets?{urlencode({'id': GROUP, **asked})}"


async def committed(browser: Browsing) -> dict[tuple[str, int], int]:
    group = browser.services.groups.find(GROUP)
    assert group is not None
    return {(topic, number): found.value.offset for topic, number, found in each_commit(group.offsets)}


@pytest.mark.parametrize(
    ("asked", "new", "command", "said"),
    [
        ({"to": "earliest"}, {0: 0}, "--all-topics --to-earliest", "5 offsets are read again"),
        ({"to": "latest"}, {0: 10}, "--all-topics --to-latest", "5 offsets are skipped"),
        (
            {"to": "latest", "topics": "orders"},
            {0: 10, 1: 10},
            "--topic orders --to-latest",
            "5 offsets are skipped, 1 partition had",
        ),
        (
            {"to": "offset", "at": "7", "topics": "orders:1"},
            {0: 5, 1: 7},
            "--topic orders:1 --to-offset 7",
            "1 partition had no",
        ),
        ({"to": "offset", "at": "99"}, {0: 10}, "--to-offset 99", "5 offsets are skipped"),
        ({"to": "shift", "at": "-2"}, {0: 3}, "--shift-by=-2", "2 offsets are read again"),
        ({"to": "shift", "at": "3"}, {0: 8}, "--shift-by 3", "3 offsets are skipped"),
        ({"to": "shift", "at": "-99"}, {0: 0}, "--shift-by=-99", "5 offsets are read again"),
        (
            {"to": "time", "at": "2023-11-14T22:13:24Z"},
            {0: 4},
            "--to-datetime 2023-11-14T22:13:24.000Z",
            "1 offset is read again",
        ),
        (
            {"to": "time", "at": "2099-01-01"},
            {0: 10},
            "--to-datetime 2099-01-01T00:00:00.000Z",
            "5 offsets are skipped",
        ),
    ],
)
async def test_offsets_go_where_the_plan_says(
    asked: dict[str, str], new: dict[int, int], command: str, said: str, tmp_path: Path
) -> None:
    async with browsing(tmp_path, WRITES) as browser:
        await filled(browser)
        before = await committed(browser)
        plan = (await browser.get(target(**asked))).page
        assert await committed(browser) == before, "a look changes nothing"
        assert "ottla groups reset-offsets -b test:9092 --" in plan.text
        assert f"{command} --execute 'a/b ü&'" in plan.text
        assert "kafka-consumer-groups.sh --bootstrap-server test:9092 --reset-offsets --group 'a/b ü&'" in plan.text
        if "topics" not in asked:
            assert f"orders-0 5 0 10 {new[0]}" in plan.text
        done = await browser.do(target(**asked))
        assert done.status == 200, done.page.text
        changed = 2 if asked.get("topics") == "orders" else 1
        where = f"The group {GROUP} continues at another offset in {counted(changed, 'partition')}"
        assert f"{where}: {said}" in done.page.text
        if "topics" not in asked:
            assert f"orders-0 5 {new[0]}" in done.page.text
        assert await committed(browser) == {("orders", number): offset for number, offset in new.items()}
        assert (await browser.get(done.page.links[GROUP])).status == 200


async def test_what_cannot_be_reset_is_said(tmp_path: Path) -> None:
    async with browsing(tmp_path, WRITES) as browser:
        await filled(browser)
        for asked, why, field in (
            ({"to": "shift", "at": "1", "topics": "prices"}, "Cannot shift offset for partition prices-0", "to"),
            ({"to": "earliest", "topics": "orders:7"}, "There is no orders-7.", "topics"),
            ({"to": "earliest", "topics": "orders:x"}, "orders:x is not a topic with partitions", "topics"),
            ({"to": "earliest", "topics": "nothing"}, "There is no topic nothing.", None),
            ({"to": "offset"}, "Where to was not said.", "at"),
            ({"to": "offset", "at": "-1"}, "-1 is not an offset.", "at"),
            ({"to": "time", "at": "soon"}, "soon is not a time", "at"),
            ({"to": "nowhere"}, "not nowhere.", "to"),
        ):
            answer = await browser.get(target(**asked))
            assert answer.status in (400, 404), asked
            assert why in answer.page.text
            assert [*answer.page.problems()] == ([] if field is None else [field])
            assert answer.page.button_form() == {}
        unknown = await browser.get("/reset-offsets?id=nobody&to=earliest")
        assert "nobody has committed no offsets: name topics." in unknown.page.text
        made = await browser.do("/reset-offsets?id=nobody&to=latest&topics=prices")
        assert made.status == 200, "a reset makes a group"
        form = (await browser.get(target(to="latest"))).page.button_form()
        before = await committed(browser)
        for offsets in ("", "orders:0", "orders:x:1", "orders:0:-1", ":0:1"):
            assert (await browser.post("/reset-offsets", {**form, "offsets": offsets})).status == 400
        refused = await browser.post("/reset-offsets", {**form, "offsets": "nothing:0:1"})
        assert "UNKNOWN_TOPIC_OR_PARTITION" in refused.page.text
        assert await committed(browser) == before


async def test_a_group_is_deleted_by_typing_its_name(tmp_path: Path) -> None:
    async with browsing(tmp_path, WRITES) as browser:
        await filled(browser)
        address = f"/delete-group?{urlencode({'id': GROUP})}"
        links = (await browser.get(f"/group?{urlencode({'id': GROUP})}")).page.links
        plan = (await browser.get(links["Delete the group…"])).page
        assert "ottla groups delete -b test:9092 'a/b ü&'" in plan.text
        assert (await browser.do(address, typed="a/b")).status == 400
        assert GROUP in (await browser.get("/groups")).page.links
        done = await browser.do(address, typed=GROUP)
        assert f"The group {GROUP} was deleted, with its committed offsets in 1 partition." in done.page.text
        assert browser.services.groups.find(GROUP) is None
        gone = await browser.get(address)
        assert "GROUP_ID_NOT_FOUND" in gone.page.text


async def test_one_offset_is_skipped_where_a_group_stands(tmp_path: Path) -> None:
    async with browsing(tmp_path, WRITES) as browser:
        await filled(browser)
        await browser.put_offset(GROUP, "orders", 1, 10)
        page = (await browser.get(f"/group?{urlencode({'id': GROUP})}")).page
        assert page.text.count("Skip one…") == 1, "nothing is left to be skipped in the other partition"
        done = await browser.do(page.links["Skip one…"])
        assert "1 offset is skipped" in done.page.text
        assert await committed(browser) == {("orders", 0): 6, ("orders", 1): 10}
