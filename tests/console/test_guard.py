"""Who is let in: not another site's page, not another name; nothing but looking; and what every answer forbids a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.base.config import Config
from ottla.base.memory_network import MemoryNetwork
from ottla.base.seams import InlineWorkers, SystemClock
from ottla.broker.server import BrokerServer, StartError
from ottla.console.broker_console import ConsoleSide

from ..helpers.memory_broker import HOST, PORT
from .helpers.browsing import browsing

WRITING = (
    "/create-topic",
    "/topics/orders/produce",
    "/topics/orders/send-again",
    "/topics/orders/copy",
    "/topics/orders/copies/0",
    "/topics/orders/add-partitions",
    "/topics/orders/configure",
    "/topics/orders/delete-records",
    "/topics/orders/delete",
    "/reset-offsets",
    "/delete-group",
    "/abort-transaction",
    "/disconnect",
    "/end-session",
    "/restart-connector",
    "/restart-failed",
    "/restart-task",
    "/pause-connector",
    "/resume-connector",
    "/stop-connector",
)
"""The addresses of a console that may write."""


async def test_names_that_are_not_the_consoles_are_refused(tmp_path: Path) -> None:
    """A page of evil.example whose name leads here is another site all the same."""
    async with browsing(tmp_path) as browser:
        for host in ("localhost", "LOCALHOST:8080", "127.0.0.1:8080", "[::1]:8080", "10.1.2.3", "console:8080"):
            assert (await browser.get("/topics", Host=host)).status == 200, host
        for host in ("evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", ""):
            answer = await browser.get("/topics", Host=host)
            assert answer.status == 421, host
            assert b"evil" not in answer.body


async def test_pages_of_other_sites_get_nothing(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        for headers in (
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},
            {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors"},
        ):
            assert (await browser.get("/top.json", **headers)).status == 403, headers
        followed = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
        assert (await browser.get("/topics", **followed)).status == 200, "a link that a person has followed"
        own = {"Host": "localhost:8080", "Origin": "http://localhost:8080", "Sec_Fetch_Site": "same-origin"}
        assert (await browser.get("/top.json", **own)).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
async def test_there_is_nothing_to_change(method: str, tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        assert (await browser.get("/topics", method=method)).status == 405


async def test_without_leave_to_write_no_address_takes_anything(tmp_path: Path) -> None:
    """Not hidden: there is no route that would."""
    async with browsing(tmp_path) as browser:
        await browser.create("orders")
        for route in browser.console.routes:
            assert route.methods is not None
            assert route.methods <= {"GET", "HEAD"}, route.path
        for address in WRITING:
            assert (await browser.get(address)).status == 404, address
            assert (await browser.post(address, {"token": "x", "typed": "orders"})).status == 405, address
        for address in ("/topics", "/topics/orders"):
            assert "…" not in "".join((await browser.get(address)).page.links)


async def test_with_leave_to_write_those_are_the_ones(tmp_path: Path) -> None:
    async with browsing(tmp_path, console_allow_writes="true") as browser:
        await browser.create("orders")
        taking = {route.path for route in browser.console.routes if "POST" in (route.methods or ())}
        assert {address.replace("orders", "{topic}").replace("0", "{number:int}") for address in WRITING} == taking
        for address in WRITING:
            if address == "/topics/orders/copies/0":
                continue  # there is none to be stopped
            refused = await browser.post(address, {"token": "x", "typed": "orders"})
            assert refused.status == 403, address
            assert "not of this session" in refused.page.text
        links = (await browser.get("/topics/orders")).page.links
        assert links["Delete the topic…"] == "/topics/orders/delete"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example", "Sec_Fetch_Site": "cross-site"},
        {"Origin": "https://evil.example", "Sec_Fetch_Site": ""},
        {"Origin": "null", "Sec_Fetch_Site": ""},
        {"Origin": "", "Sec_Fetch_Site": "same-site"},
        {"Origin": "", "Sec_Fetch_Site": "none"},
        {"Origin": "", "Sec_Fetch_Site": ""},
        {"Host": "evil.example", "Origin": "http://evil.example"},
    ],
)
async def test_forms_of_other_sites_do_nothing(headers: dict[str, str], tmp_path: Path) -> None:
    """Also one that has the token."""
    async with browsing(tmp_path, console_allow_writes="true") as browser:
        await browser.create("orders")
        form = (await browser.get("/topics/orders/delete")).page.button_form()
        refused = await browser.post("/topics/orders/delete", {**form, "typed": "orders"}, **headers)
        assert refused.status in (403, 421)
        assert (await browser.get("/topics/orders")).status == 200


@pytest.mark.parametrize(
    ("fields", "headers"),
    [
        ({"token": ""}, {}),
        ({"token": "0" * 64}, {}),
        ({"token": "\u00e4"}, {}),
        ({}, {"Content_Type": "text/plain"}),
        ({}, {"Content_Type": "multipart/form-data; boundary=x"}),
        ({}, {"Content_Type": "application/json"}),
    ],
)
async def test_a_form_without_its_token_does_nothing(
    fields: dict[str, str], headers: dict[str, str], tmp_path: Path
) -> None:
    async with browsing(tmp_path, console_allow_writes="true") as browser:
        await browser.create("orders")
        form = (await browser.get("/topics/orders/delete")).page.button_form()
        refused = await browser.post("/topics/orders/delete", {**form, "typed": "orders", **fields}, **headers)
        assert refused.status == 403
        assert (await browser.get("/topics/orders")).status == 200


async def test_what_every_answer_says(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        for target in ("/", "/topics", "/nothing", "/static/nothing", "/top.json", "/topics/nothing/search"):
            headers = (await browser.get(target)).headers
            policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
            assert policy["default-src"] == "'none'"
            assert policy["script-src"] == policy["style-src"] == "'self'"
            assert policy["frame-ancestors"] == "'none'"
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        (
            {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"},
            "there are access rules, and no listener",
        ),
        (
            {"listeners": f"SASL_PLAINTEXT://{HOST}:{PORT}", "sasl.enabled.mechanisms": "OAUTHBEARER"},
            "every listener asks clients who they are, and no listener has users with passwords",
        ),
        (
            {"listeners": f"SSL://{HOST}:{PORT}", "listener.name.ssl.ssl.client.auth": "required"},
            "every listener asks clients who they are, and no listener has users with passwords",
        ),
    ],
)
def test_it_lets_nobody_in_whom_the_broker_would_not(properties: dict[str, str], why: str, tmp_path: Path) -> None:
    """Whom the console could not know is not let in; nor is the broker's other way in what counts."""
    config = Config({"log.dirs": str(tmp_path), "listeners": f"PLAINTEXT://{HOST}:{PORT}", **properties})
    server = BrokerServer(config, network=MemoryNetwork())
    with pytest.raises(StartError, match=why):
        ConsoleSide(server, MemoryNetwork(), SystemClock(), InlineWorkers())
