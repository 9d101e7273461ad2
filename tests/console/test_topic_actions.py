"""What the console can do with topics: a plan with the command first, then by the broker's own handlers."""

from __future__ import annotations

from pathlib import Path

from ottla.wire.records import Record

from .helpers.browsing import Open, on_both

WRITES = {"console_allow_writes": "true"}


@on_both
async def test_a_topic_is_made(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path, **WRITES) as browser:
        empty = (await browser.get("/create-topic")).page
        assert empty.button_form() == {}
        target = "/create-topic?name=a+b&partitions=3"
        wrong = await browser.get(target)
        assert wrong.status == 409
        assert "INVALID_TOPIC_EXCEPTION" in wrong.page.text
        assert wrong.page.button_form() == {}
        target = "/create-topic?name=prices&partitions=3&replicas=&configs=cleanup.policy%3Dcompact%0Aretention.ms%3D5"
        plan = (await browser.get(target)).page
        made = "-p 3 -c cleanup.policy=compact -c retention.ms=5 prices"
        assert f"ottla topics create -b test:9092 {made}" in plan.text
        assert "kafka-topics.sh --bootstrap-server test:9092 --create --topic prices --partitions 3" in plan.text
        assert (await browser.get("/topics/prices")).status == 404, "a plan does nothing"
        done = await browser.do(target)
        assert "The topic prices was made, with 3 partitions, 1 replica of each and 2 topic settings." in done.page.text
        assert (await browser.get(done.page.links["prices"])).status == 200
        settings = (await browser.get("/topics/prices/settings")).page.text
        assert "cleanup.policy Change… Default… compact this topic" in settings
        assert "retention.ms Change… Default… 5 this topic" in settings
        again = await browser.get(target)
        assert again.status == 409
        assert "TOPIC_ALREADY_EXISTS" in again.page.text


@on_both
async def test_what_is_no_topic_is_said(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path, **WRITES) as browser:
        for query in (
            "name=t&partitions=x",
            "name=t&partitions=0",
            "name=t&replicas=-1",
            "name=t&configs=retention.ms",
        ):
            answer = await browser.get(f"/create-topic?{query}")
            assert answer.status == 400, query
            assert [*answer.page.problems()] == [query.split("&")[1].partition("=")[0]]
            values = {each["name"]: each.get("value") for tag, each in answer.page.elements if tag == "input"}
            assert values["name"] == "t", "what was typed stays"
        unknown = await browser.get("/create-topic?name=t&configs=nothing%3D1")
        assert "INVALID_CONFIG" in unknown.page.text
        for what in ("add-partitions", "configure", "delete-records", "delete"):
            assert (await browser.get(f"/topics/nothing/{what}?count=2&name=retention.ms")).status in (404, 409)


@on_both
async def test_partitions_are_added(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path, **WRITES) as browser:
        await browser.create("orders", 2)
        fewer = await browser.get("/topics/orders/add-partitions?count=1")
        assert "INVALID_PARTITIONS" in fewer.page.text
        plan = (await browser.get("/topics/orders/add-partitions?count=5")).page
        assert "ottla topics alter -b test:9092 -p 5 orders" in plan.text
        done = await browser.do("/topics/orders/add-partitions?count=5")
        assert "3 partitions were added to orders, which had 2, and has 5." in done.page.text
        assert (await browser.get("/topics/orders")).page.links["4"] == "/topics/orders/records?partition=4"


@on_both
async def test_a_setting_is_set_and_given_back(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path, **WRITES) as browser:
        await browser.create("orders")
        target = "/topics/orders/configure?name=retention.ms&way=set&value=1234"
        plan = (await browser.get(target)).page
        assert "retention.ms 604800000 1234" in plan.text
        assert "ottla configs set -b test:9092 --topic orders retention.ms=1234" in plan.text
        done = await browser.do(target)
        assert "retention.ms of orders was 604800000, and is 1234." in done.page.text
        settings = (await browser.get("/topics/orders/settings?q=retention.ms")).page
        assert "retention.ms Change… Default… 1234 this topic" in settings.text
        back = "/topics/orders/configure?name=retention.ms&way=delete"
        assert "--delete-config retention.ms" in (await browser.get(back)).page.text
        done = await browser.do(back)
        assert "retention.ms of orders was 1234, and has its default again." in done.page.text
        settings = (await browser.get("/topics/orders/settings?q=retention.ms")).page
        assert "retention.ms Change… 604800000 default" in settings.text
        wrong = await browser.get("/topics/orders/configure?name=retention.ms&way=set&value=soon")
        assert wrong.status == 409
        assert "INVALID_CONFIG" in wrong.page.text


@on_both
async def test_records_are_deleted_up_to_an_offset(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path, **WRITES) as browser:
        await browser.create("orders")
        browser.put("orders", *[Record(timestamp=1, value=b"v")] * 7)
        target = "/topics/orders/delete-records?partition=0&offset=3"
        plan = (await browser.get(target)).page
        assert "before offset 3 are deleted: 3 offsets" in plan.text
        assert "ottla topics trim -b test:9092 -p 0 -o 3 --execute orders" in plan.text
        assert (await browser.do(target, typed="order")).status == 400
        assert browser.partition("orders").log.log_start_offset == 0
        done = await browser.do(target, typed="orders")
        assert (
            "The records of orders-0 before offset 3 were deleted: 3 offsets. 4 are left, from 3 to 6."
            in done.page.text
        )
        assert browser.partition("orders").log.log_start_offset == 3
        again = await browser.do(target, typed="orders")
        assert "before offset 3 were deleted: 0 offsets. 4 are left" in again.page.text
        beyond = await browser.do("/topics/orders/delete-records?partition=0&offset=99", typed="orders")
        assert "OFFSET_OUT_OF_RANGE" in beyond.page.text
        done = await browser.do("/topics/orders/delete-records?partition=0&offset=end", typed="orders")
        assert "before offset 7 were deleted: 4 offsets. None is left." in done.page.text
        assert browser.partition("orders").log.log_start_offset == 7


@on_both
async def test_a_topic_is_deleted_by_typing_its_name(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path, **WRITES) as browser:
        await browser.create("orders")
        target = "/topics/orders/delete"
        assert "ottla topics delete -b test:9092 orders" in (await browser.get(target)).page.text
        for typed in ("", "order", "Orders", "orders "):
            refused = await browser.do(target, typed=typed)
            assert refused.status == 400
            assert "Nothing was done" in refused.page.text
            assert refused.page.button_form(), "it can be tried again"
            assert [*refused.page.problems()] == ["typed"]
        done = await browser.do(target, typed="orders")
        assert "The topic orders was deleted, with its 1 partition." in done.page.text
        assert (await browser.get("/topics/orders")).status == 404


@on_both
async def test_the_brokers_own_topics_are_left_alone(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path, **WRITES, offsets_topic_replication_factor="1") as browser:
        await browser.create("__consumer_offsets")
        token = (await browser.get("/create-topic?name=t")).page.button_form()["token"]
        for what in ("delete", "delete-records"):
            target = f"/topics/__consumer_offsets/{what}"
            assert "the brokers' own" in (await browser.get(target)).page.text
            fields = {"token": token, "typed": "__consumer_offsets", "partition": "0", "offset": "end"}
            assert (await browser.post(target, fields)).status == 409
        assert (await browser.get("/topics/__consumer_offsets")).status == 200
