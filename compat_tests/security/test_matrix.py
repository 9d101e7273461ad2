"""Each client at each listener, with each mechanism: what works, who is not let in, and who is let in and has no right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.clients import model
from ottla.compat_tests.security.broker import OPEN, PRIVATE
from ottla.compat_tests.security.conftest import OpenSession
from ottla.compat_tests.security.ways import Way, cases
from ottla.compat_tests.session import ClientSession, commit, consume, eventually

pytestmark = [pytest.mark.restart, pytest.mark.one_broker("it has a broker of its own, with users and listeners")]
VALUES = [b"%d" % number for number in range(20)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Which clients at which listeners."""
    if "way" in metafunc.fixturenames:
        is_refusal = metafunc.function is test_wrong_secret
        metafunc.parametrize(("name", "way"), list(cases(metafunc.config, authenticated=is_refusal)))


@pytest.mark.capability("authentication")
def test_produces_and_consumes_and_administers(
    session: OpenSession, name: str, way: Way, fresh_name: Callable[[str], str]
) -> None:
    client = session(name, *way)
    topic, group = OPEN + fresh_name("topic"), OPEN + fresh_name("group")
    client.admin.create_topic(topic, 1)
    try:
        eventually(lambda: topic in client.admin.list_topics())
        client.produce(topic, VALUES)
        assert [message.value for message in read_in_group(client, topic, group)] == VALUES
        assert PRIVATE not in client.admin.list_topics(), "a topic is shown to a client that may not describe it"
    finally:
        client.admin.delete_topic(topic)


def read_in_group(client: ClientSession, topic: str, group: str) -> list[model.Message]:
    """All of ``VALUES``, as a member of a group that commits."""
    consumer = client.consumer(group_id=group)
    consumer.subscribe([topic])
    messages = consume(consumer, len(VALUES))
    commit(consumer, {(topic, 0): model.Committed(len(VALUES))})
    return messages


@pytest.mark.capability("authentication: refused")
def test_wrong_secret(session: OpenSession, name: str, way: Way, fresh_name: Callable[[str], str]) -> None:
    """A password that is wrong, a token that another issuer has signed, a certificate of another CA."""
    with pytest.raises(model.ClientFailure):
        session(name, *way, wrong=True).admin.list_topics()
    assert session(name, *way).admin.list_topics() is not None, "it is not let in with the right one either"


@pytest.mark.capability("authorization: no right")
def test_no_right(session: OpenSession, name: str, way: Way) -> None:
    with pytest.raises(model.ClientFailure) as refused:
        session(name, *way).produce(PRIVATE, [b"mine"])
    assert refused.value.code in (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None), refused.value
