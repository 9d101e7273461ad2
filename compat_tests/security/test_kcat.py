"""kcat, which has its own names for what a client shows."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from ottla.compat_tests import toolchains
from ottla.compat_tests.clients.security import OAUTHBEARER, librdkafka_properties
from ottla.compat_tests.security.broker import OPEN, PRIVATE, SCRAM, SecuredBroker
from ottla.compat_tests.security.ways import KCAT, Way, ways

pytestmark = [
    pytest.mark.client("kcat"),
    pytest.mark.restart,
    pytest.mark.one_broker("it has a broker of its own, with users and listeners"),
]
Kcat = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """It takes no token, only the addresses of those who give them.

    By SCRAM nothing of a distribution gets in: librdkafka before 2.6.1 puts its nonce into the last message twice, which Kafka
    refuses since CVE-2024-56128.
    """
    if "way" in metafunc.fixturenames:
        metafunc.parametrize("way", ways(metafunc.config, KCAT, without=[OAUTHBEARER, *SCRAM]), ids=str)


@pytest.fixture
def kcat(secured: SecuredBroker, way: Way) -> Kcat:
    """Runs it."""

    def run(*arguments: str, stdin: str = "", wrong: bool = False) -> subprocess.CompletedProcess[str]:
        login = librdkafka_properties(secured.way_in(*way, wrong=wrong))
        options = [word for item in login.items() for word in ("-X", "=".join(item))]
        command = [str(toolchains.kcat()), "-b", secured.address(*way), *options, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)

    return run


@pytest.mark.capability("authentication")
def test_produces_and_consumes(kcat: Kcat, fresh_name: Callable[[str], str]) -> None:
    topic, group = OPEN + fresh_name("topic"), OPEN + fresh_name("group")
    sent = kcat("-P", "-t", topic, stdin="one\ntwo\n")
    assert sent.returncode == 0, sent.stderr
    read = kcat("-G", group, "-X", "auto.offset.reset=earliest", "-c", "2", topic)
    assert read.stdout == "one\ntwo\n", read.stderr
    assert PRIVATE not in kcat("-L").stdout


@pytest.mark.capability("authentication: refused")
def test_wrong_secret(kcat: Kcat, way: Way) -> None:
    if way.how is None:
        return
    refused = kcat("-L", "-m", "5", wrong=True)
    assert refused.returncode != 0
    assert kcat("-L").returncode == 0


@pytest.mark.capability("authorization: no right")
def test_no_right(kcat: Kcat) -> None:
    refused = kcat("-P", "-t", PRIVATE, stdin="mine\n")
    assert refused.returncode != 0
    assert "authorization failed" in refused.stderr.lower()
