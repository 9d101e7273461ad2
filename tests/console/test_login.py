"""Logging in at the console of a broker that has users: by the listeners' passwords, into a session that cannot be stolen."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from ottla.console import sessions

from .helpers.browsing import browsing
from .helpers.secured import SECURED, log_in, set_password


async def test_nothing_is_shown_before_the_log_in(tmp_path: Path) -> None:
    async with browsing(tmp_path, SECURED) as browser:
        await browser.create("orders")
        assert browser.console.routes
        for route in browser.console.routes:
            address = (
                route.path.replace("{topic}", "orders").replace("{partition:int}", "0").replace("{offset:int}", "0")
            )
            address = address.replace("{what}", "value")
            if address.startswith("/static"):
                continue
            by_a_person = await browser.get(address, Sec_Fetch_Mode="navigate")
            assert by_a_person.status in (303, 401), address
            assert b"orders" not in by_a_person.body
            for headers in ({"Sec_Fetch_Mode": "cors"}, {"HX_Request": "true"}):
                assert (await browser.get(address, **headers)).status == 401, address
        assert (await browser.get("/nothing")).headers["location"] == "/login?next=%2Fnothing"
        page = (await browser.get("/login")).page
        files = [attributes["src"] for tag, attributes in page.elements if tag == "script"]
        assert files
        for file in files:
            assert file is not None
            assert (await browser.get(file)).status == 200


async def test_in_to_where_one_wanted_to_go_and_out_again(tmp_path: Path) -> None:
    async with browsing(tmp_path, SECURED) as browser:
        await browser.create("orders")
        sent = await browser.get("/topics/orders?x=%2F1")
        done = await log_in(browser, "admin", following=sent.headers["location"].partition("next=")[2])
        assert (done.status, done.headers["location"]) == (303, "/topics/orders?x=%2F1")
        cookie = done.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert "secure" not in cookie.replace("httponly", ""), "without TLS a browser would not send it back"
        page = (await browser.get("/topics/orders")).page
        assert "admin Log out" in page.text
        assert (await browser.get("/login")).headers["location"] == "/"
        cookies = dict(browser.cookies)
        out = await browser.post("/logout", page.button_form())
        assert (out.status, out.headers["location"]) == (303, "/login")
        browser.cookies = cookies
        assert (await browser.get("/topics/orders")).status == 303, "the token is worth nothing any more"


async def test_out_only_by_ones_own_form(tmp_path: Path) -> None:
    async with browsing(tmp_path, SECURED) as browser:
        await log_in(browser, "admin")
        assert (await browser.get("/logout")).status == 405
        assert (await browser.post("/logout", {"token": "x"})).status == 403
        evil = {"Origin": "https://evil.example", "Sec_Fetch_Site": "cross-site"}
        assert (await browser.post("/logout", (await browser.get("/topics")).page.button_form(), **evil)).status == 403
        assert (await browser.get("/topics")).status == 200


@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("alice", "bobs-secret"),
        ("alice", "alices-secret "),
        ("nobody", "alices-secret"),
        ("", "x"),
        ("alice\0alice", "alices-secret"),
        ("ali,ce=", "x"),
        ("ä" * 5000, "x"),
        ("alice", "x" * 5000),
    ],
)
async def test_a_wrong_password_looks_like_an_unknown_user(user: str, password: str, tmp_path: Path) -> None:
    async with browsing(tmp_path, SECURED) as browser:
        await set_password(browser, "carol", "carols-secret")
        refused = await log_in(browser, user, password)
        assert refused.status == 403
        assert "The user name or the password is wrong." in refused.page.text
        assert "set-cookie" not in refused.headers
        assert (await browser.get("/topics")).status == 303


async def test_scram_users_come_in_and_a_changed_password_ends_it(tmp_path: Path) -> None:
    async with browsing(tmp_path, SECURED) as browser:
        await set_password(browser, "carol", "carols-secret")
        assert (await log_in(browser, "carol", "nothing")).status == 403
        assert (await log_in(browser, "carol")).status == 303
        assert (await browser.get("/topics")).status == 200
        await set_password(browser, "carol", "another")
        assert (await browser.get("/topics")).status == 303
        assert (await log_in(browser, "carol", "another")).status == 303
        await set_password(browser, "carol", None)
        assert (await browser.get("/topics")).status == 303


async def test_a_session_that_was_foisted_on_a_browser_is_not_taken_up(tmp_path: Path) -> None:
    """Whatever token comes with a log-in, the session has a new one; and that of before the log-in is over."""
    async with browsing(tmp_path, SECURED) as attacker:
        await log_in(attacker, "bob")
        victim = attacker.another()
        victim.cookies = dict(attacker.cookies)
        assert (await victim.get("/login")).status == 303, "bob is in already"
        ours = victim.another()
        ours.cookies = {"ottla-session-8080": "made-up"}
        assert (await log_in(ours, "alice")).status == 303
        assert ours.cookies["ottla-session-8080"] != "made-up"
        stale = ours.another()
        stale.cookies = {"ottla-session-8080": "made-up"}
        assert (await stale.get("/topics")).status == 303


async def test_forms_of_one_session_are_nothing_to_another(tmp_path: Path) -> None:
    async with browsing(tmp_path, {**SECURED, "console.allow.writes": "true"}) as browser:
        await browser.create("orders")
        await log_in(browser, "admin")
        form = (await browser.get("/topics/orders/delete")).page
        token = [attributes["value"] for _, attributes in form.elements if attributes.get("name") == "token"][-1]
        other = browser.another()
        await log_in(other, "admin")
        refused = await other.post("/topics/orders/delete", {"token": token or "", "typed": "orders"})
        assert refused.status == 403
        stranger = browser.another()
        assert (await stranger.post("/topics/orders/delete", {"token": token or "", "typed": "orders"})).status == 403
        assert (await browser.get("/topics/orders")).status == 200


async def test_passwords_cannot_be_guessed_by_the_hundred(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with browsing(tmp_path, SECURED) as browser:
        for _ in range(sessions.GUESSES):
            assert (await log_in(browser, "alice", "wrong")).status == 403
        refused = await log_in(browser, "alice")
        assert refused.status == 429, "even the right one"
        assert "Wait a minute." in refused.page.text
        assert (await log_in(browser, "bob")).status == 429, "it is the same address"
        await trio.sleep(sessions.GUESS_SECONDS)
        for _ in range(3 * sessions.GUESSES):
            assert (await log_in(browser.another(), "alice")).status == 303, "the right one does not count"


async def test_a_session_ends_when_it_is_not_used(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with browsing(tmp_path, SECURED) as browser:
        await log_in(browser, "admin")
        for _ in range(3):
            await trio.sleep(sessions.IDLE_SECONDS - 60)
            assert (await browser.get("/topics")).status == 200
        for _ in range(4):  # what a page that was left open does
            await trio.sleep(sessions.IDLE_SECONDS / 4)
            last = await browser.get("/topics", HX_Request="true", Sec_Fetch_Mode="cors")
        assert last.status == 401
        assert last.headers["hx-refresh"] == "true"


async def test_a_session_ends_in_any_case(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    limited = {**SECURED, "listener.name.sasl.plain.connections.max.reauth.ms": "3600000"}
    async with browsing(tmp_path, limited) as browser:
        await log_in(browser, "admin")
        for _ in range(5):
            await trio.sleep(700)
            assert (await browser.get("/topics")).status == 200
        await trio.sleep(110)
        assert (await browser.get("/topics")).status == 303


async def test_sessions_are_bounded(tmp_path: Path) -> None:
    async with browsing(tmp_path, SECURED) as browser:
        first = browser.another()
        await log_in(first, "alice")
        for _ in range(sessions.MOST_OF_ONE_USER):
            await log_in(browser.another(), "alice")
        assert (await first.get("/topics")).status == 303
        assert (await log_in(first, "alice")).status == 303


@pytest.mark.parametrize(
    "following",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "\\evil",
        "javascript:alert(1)",
        "/login",
        "/a\r\nb",
    ],
)
async def test_a_log_in_leads_nowhere_else(following: str, tmp_path: Path) -> None:
    async with browsing(tmp_path, SECURED) as browser:
        fields = {"user": "alice", "password": "alices-secret", "next": following}
        token = (await browser.get("/login")).page.button_form()["token"]
        assert (await browser.post("/login", {**fields, "token": token})).headers["location"] == "/"


async def test_a_link_on_another_page_is_asked_once_more(tmp_path: Path) -> None:
    """A browser sends the cookie only with what comes from the console's own pages."""
    async with browsing(tmp_path, SECURED) as browser:
        linked = await browser.get("/topics?q=a", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")
        assert linked.status == 200
        assert linked.page.links["Continue to the console"] == "/topics?q=a"
