"""Who is let in: not another site's page, not another name; nothing but looking; and what every answer forbids a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.base.config import Config
from ottla.base.memory_network import MemoryNetwork
from ottla.broker.server import BrokerServer, StartError
from ottla.console.side import ConsoleSide

from ..memory_broker import HOST, PORT
from .browsing import browsing


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
        ({"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}, "where there are access rules"),
        (
            {"listeners": f"SASL_PLAINTEXT://{HOST}:{PORT}", "sasl.enabled.mechanisms": "PLAIN"},
            "where every listener asks clients who they are",
        ),
    ],
)
def test_it_lets_nobody_in_whom_the_broker_would_not(properties: dict[str, str], why: str, tmp_path: Path) -> None:
    config = Config({"log.dirs": str(tmp_path), "listeners": f"PLAINTEXT://{HOST}:{PORT}", **properties})
    network = MemoryNetwork()
    server = BrokerServer.__new__(BrokerServer)
    server.config = config
    with pytest.raises(StartError, match=why):
        ConsoleSide(server, network, None, None)  # type: ignore[arg-type]
