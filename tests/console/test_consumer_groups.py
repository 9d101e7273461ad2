"""Consumer groups of KIP-848 on the pages: alike at their coordinator and elsewhere, with each member's way to the target."""

from __future__ import annotations

from urllib.parse import urlencode

import trio.testing

from .helpers.browsing import Browsing, Page, alone_on
from .helpers.consumers import Members, consumers
from .helpers.hostile import EVIL, check_answer

Clock = trio.testing.MockClock
NOT_KNOWN = "\N{EN DASH}"


async def page(browser: Browsing, target: str) -> Page:
    """A page with what is so now."""
    if browser.alone is None:
        await browser.renewed()
        await browser.console.source.renew()
    answer = await browser.get(target)
    assert answer.status == 200, answer.page.text
    return answer.page


async def rebalancing(beat: Members) -> None:
    """A has to give up 2 and 3, for which B waits."""
    assert await beat("A", 0) == (2, [0, 1, 2, 3])
    assert await beat("B", 0) == (3, [])
    assert await beat("A", 2) == (2, [0, 1])


def members(shown: Page) -> list[str]:
    return [row for row in shown.row_texts() if row.startswith(("A ", "B "))]


async def test_each_console_shows_a_group_and_how_far_its_members_have_come(autojump_clock: Clock) -> None:
    async with consumers() as (beat, browsers), alone_on(beat.world.network, ("node1", 9092)) as alone:
        await rebalancing(beat)
        browsers = {**browsers, 0: Browsing(browsers[1].server, beat.world.network, alone)}
        for where, browser in browsers.items():
            listed = await page(browser, "/groups")
            assert f"g consumer Reconciling 2 0 0 {NOT_KNOWN} {NOT_KNOWN} 3 uniform" in listed.row_texts(), (
                f"by broker {where}"
            )
            shown = await page(browser, "/group?id=g")
            assert f"State Reconciling Type consumer Members 2 Lag {NOT_KNOWN} Epoch 3 Assignment epoch 3" in shown.text
            assert "Assignor uniform" in shown.text
            first, second = members(shown)
            assert " 2 gives up partitions t : 0, 1, 2, 3 t : 2, 3 t : 0, 1 t" in first, f"by broker {where}: {first}"
            assert " 3 waits for partitions t : 2, 3 t : 2, 3 t" in second, f"by broker {where}: {second}"
        assert await beat("A", 2, [0, 1]) == (3, None)
        assert await beat("B", 3) == (3, [2, 3])
        for browser in browsers.values():
            shown = await page(browser, "/group?id=g")
            assert "State Stable" in shown.text
            assert [" 3 stable t : " in row for row in members(shown)] == [True, True]
            owners = [row.split()[-1] for row in shown.row_texts() if row.startswith("t ")]
            assert owners == ["A", "A", "B", "B"]


async def test_a_member_that_was_not_heard_since_and_one_that_is_away(autojump_clock: Clock) -> None:
    async with consumers() as (beat, browsers):
        assert await beat("A", 0, instance_id="i") == (2, [0, 1, 2, 3])
        assert await beat("B", 0, names=["u"]) == (3, [])
        shown = await page(browsers[beat.node_id], "/group?id=g")
        assert " 2 comes to epoch 3 t : 0, 1, 2, 3 t : 0, 1, 2, 3 t" in members(shown)[0]
        await beat("A", -2, instance_id="i")
        shown = await page(browsers[beat.node_id], "/group?id=g")
        assert " i client " in members(shown)[0]
        assert " -2 away, and expected back t : 0, 1, 2, 3 " in members(shown)[0]


async def test_regular_expressions_have_their_topics(autojump_clock: Clock) -> None:
    async with consumers() as (beat, browsers):
        await beat("A", 0, names=(), subscribed_topic_regex="t|u")
        while await beat("A", 1) == (1, None):
            await trio.sleep(0.1)
        here, elsewhere = browsers[beat.node_id], browsers[3 - beat.node_id]
        assert any(row.startswith("t|u 1 t ") for row in (await page(here, "/group?id=g")).row_texts())
        assert any(row.startswith("t|u 1 not known here") for row in (await page(elsewhere, "/group?id=g")).row_texts())


async def test_a_group_with_members_is_neither_reset_nor_deleted(autojump_clock: Clock) -> None:
    async with consumers() as (beat, browsers):
        await beat("A", 0)
        elsewhere = browsers[3 - beat.node_id]
        async with alone_on(beat.world.network, ("node1", 9092), writes=True) as alone:
            consoles = [*browsers.values(), Browsing(elsewhere.server, beat.world.network, alone)]
            for browser in consoles:
                reset = await browser.get("/reset-offsets?id=g&to=earliest&topics=t")
                assert (
                    "can only be reset if the group 'g' is inactive, but the current state is Stable" in reset.page.text
                )
                deleted = await browser.get("/delete-group?id=g")
                assert deleted.status == 409
                assert "The group g is Stable. (NON_EMPTY_GROUP)" in deleted.page.text
        await beat("A", -1)
        assert (await elsewhere.do("/reset-offsets?id=g&to=latest&topics=t")).status == 200
        assert "g consumer Empty 0 1 4 0 0 3 uniform" in (await page(elsewhere, "/groups")).row_texts()
        assert (await elsewhere.do("/delete-group?id=g", typed="g")).status == 200
        assert "There is no group g." in (await elsewhere.get("/delete-group?id=g")).page.text
        assert beat.world.services(beat.node_id).groups.find("g") is None


async def test_nothing_of_a_member_gets_into_a_page(autojump_clock: Clock) -> None:
    expression = EVIL.replace("[", "")
    async with consumers(EVIL) as (beat, browsers):
        await beat(EVIL, 0, instance_id=EVIL, rack_id=EVIL, subscribed_topic_regex=expression, names=[EVIL])
        await beat("A", 0, names=(), subscribed_topic_regex="<b>t</b>")
        for browser in browsers.values():
            for target in (
                "/groups",
                f"/group?{urlencode({'id': EVIL})}",
                f"/group/timeline?{urlencode({'id': EVIL})}",
            ):
                await browser.renewed()
                await browser.console.source.renew()
                answer = await browser.get(target)
                assert answer.status == 200
                check_answer(answer, target)
            shown = await page(browser, f"/group?{urlencode({'id': EVIL})}")
            assert shown.text.count("alert(1)") > 8
            assert "<b>t</b>" in shown.text


async def test_the_session_of_a_member_is_ended_at_its_coordinator(autojump_clock: Clock) -> None:
    async with consumers() as (beat, browsers):
        await beat("A", 0)
        await beat("B", 0)
        here, elsewhere = browsers[beat.node_id], browsers[3 - beat.node_id]
        link = "/end-session?id=g&member=A"
        assert link in [attributes.get("href") for _, attributes in (await page(here, "/group?id=g")).elements]
        assert "coordinator of no group g" in (await elsewhere.get(link)).page.text
        assert "has no member C" in (await here.get("/end-session?id=g&member=C")).page.text
        done = await here.do(link)
        assert "The session of A in the group g has ended." in done.page.text
        timeline = (await page(here, "/group/timeline?id=g")).row_texts()
        assert any(" session ended A client " in row for row in timeline)
        assert [row.split()[0] for row in members(await page(here, "/group?id=g"))] == ["B"]
