"""One connection, many requests: order, acks=0, waiting.

Not here: throttling (no quotas are served), SASL (no such listener yet), the first request after a start (the tests of
restarts connect as soon as the port is open).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.requests import NO_V2, batch, fetch, fetch_request, partitions_of, produce, produce_request
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.produce import ProduceRequest

pytestmark = pytest.mark.client("wire")


@pytest.mark.capability("answers leave in the order of requests")
def test_pipelining(leader: Connection, topic: str) -> None:
    # The first answer is held for its wait, all the others are ready at once.
    leader.send(fetch_request(topic, {0: 0}, min_bytes=1, max_wait_ms=500), 12)
    for _ in range(50):
        leader.send(MetadataRequest(topics=[]), 12)
    leader.send(produce_request(topic, {0: batch(b"x")}), 9)
    assert partitions_of(leader.receive())[0].error_code == ErrorCode.NONE
    for _ in range(50):
        assert leader.receive().brokers
    assert leader.receive().responses[0].partition_responses[0].base_offset == 0


@pytest.mark.capability("acks=0")
@pytest.mark.parametrize("version", [*range(3, 12), pytest.param(12, marks=pytest.mark.one_broker(NO_V2))])
@pytest.mark.parametrize("client_id", [None, "me"])
def test_no_answer_and_later_answers_flow(leader: Connection, topic: str, version: int, client_id: str | None) -> None:
    for _ in range(3):
        leader.send(
            produce_request(topic, {0: batch(b"x", b"y")}, acks=0), version, client_id=client_id, answered=False
        )
    assert leader.call(MetadataRequest(topics=[]), 12).brokers
    eventually(lambda: fetch(leader, topic, {0: 0})[0].high_watermark == 6)  # replicas have their own time


@pytest.mark.capability("acks=0")
def test_a_failure_closes_the_connection(leader: Connection, fresh_name: Callable[[str], str]) -> None:
    leader.send(produce_request(fresh_name("missing"), {0: batch(b"x")}, acks=0), 9, answered=False)
    with pytest.raises(EOFError):
        leader.receive_frame()


@pytest.mark.capability("acks=0")
@pytest.mark.parametrize("acks", [1, -1])
def test_produce_without_topics_is_answered(leader: Connection, acks: int) -> None:
    assert leader.call(ProduceRequest(acks=acks, timeout_ms=1000), 9).responses == []


@pytest.mark.capability("acks=0")
def test_invalid_acks(leader: Connection, topic: str) -> None:
    (answer,) = leader.call(produce_request(topic, {0: batch(b"x")}, acks=2), 9).responses[0].partition_responses
    assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert fetch(leader, topic, {0: 0})[0].high_watermark == 0


@pytest.mark.capability("long poll")
def test_a_waiting_fetch_does_not_stop_others(
    leader: Connection, connections: Callable[[], Connection], topic: str
) -> None:
    # No answer may be held for as long as this fetch is allowed to wait.
    leader.send(fetch_request(topic, {0: 0}, min_bytes=1, max_wait_ms=60_000), 12)
    other = connections()
    assert other.call(MetadataRequest(topics=[]), 12).brokers
    produce(other, topic, batch(b"x"))
    assert len(partitions_of(leader.receive())[0].records) > 0


@pytest.mark.capability("long poll")
def test_min_bytes_counts_over_requests(leader: Connection, connections: Callable[[], Connection], topic: str) -> None:
    size = len(batch(b"x" * 100))
    leader.send(fetch_request(topic, {0: 0}, min_bytes=3 * size, max_wait_ms=60_000), 12)
    other = connections()
    for _ in range(2):
        produce(other, topic, batch(b"x" * 100))
    assert leader.is_silent()
    produce(other, topic, batch(b"x" * 100))
    assert len(partitions_of(leader.receive())[0].records) == 3 * size


@pytest.mark.capability("long poll")
def test_max_wait_ends_without_records(leader: Connection, topic: str) -> None:
    (answer,) = fetch(leader, topic, {0: 0}, min_bytes=1, max_wait_ms=100).values()
    # Empty is an empty field, not null.
    assert bytes(answer.records) == b""
