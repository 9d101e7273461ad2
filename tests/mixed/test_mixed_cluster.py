"""Ottla and Apache Kafka 3.9 in one cluster: each leads the other's replicas and takes records, as controller either; and both
hold clients to the same quotas in the same way.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from ottla.compat_tests.raw.requests import batch, fetch_request, produce_request
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection
from ottla.compat_tests.zookeeper import ZooKeeperProcess
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from ottla.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

from .helpers.mixed import BOTH, KAFKA, OTTLA, PATIENCE_S, Mixed
from .helpers.on_zookeeper import ZooKeeperMixed, running

pytestmark = pytest.mark.slow

RATE = 200_000
SIZE = 100_000
REQUESTS = 26
"""Twenty of them are the ten windows of a second that a client is given when it begins."""

LAST = "the-last-client"
ATTEMPTS = 3
"""A machine that lets one of the brokers wait for a second lengthens its client's time by that."""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeperProcess) -> Iterator[ZooKeeperMixed]:
    with running("mixed", tmp_path_factory.mktemp("mixed"), zookeeper_server, "/mixed-cluster") as mixed:
        yield mixed


def test_either_kind_leads_and_either_is_the_controller(mixed: ZooKeeperMixed) -> None:
    for controller, leader in itertools.product(BOTH, BOTH):
        mixed.led_by(controller)
        topic = f"{leader}-leads-under-{controller}"
        mixed.create(topic, mixed.replicas_from(mixed.one(leader)))
        values = [b"%d" % number for number in range(200)]
        mixed.produce(topic, values, **{"enable.idempotence": True})
        assert mixed.read(topic, len(values)) == values
        mixed.wait_same(topic)
        mixed.wait_isr(topic, mixed.ids)
    assert mixed.troubles() == []


class HeldUp(NamedTuple):
    """How often a client was held up, and for how many milliseconds in all."""

    times: int
    total_ms: int


def is_alike(ottlas: HeldUp, kafkas: HeldUp) -> bool:
    """Within a tenth, and once more or less."""
    is_close = 0.9 * kafkas.total_ms < ottlas.total_ms < 1.1 * kafkas.total_ms
    return is_close and kafkas.total_ms > 2_000 and abs(ottlas.times - kafkas.times) <= 1


def set_quota(connection: Connection, key: str, value: float | None, client_id: str | None = None) -> None:
    entity = [EntityData(entity_type="client-id", entity_name=client_id)]
    op = OpData(key=key, value=value or 0.0, remove=value is None)
    (answer,) = connection.call(AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=[op])]), 1).entries
    assert answer.error_code == 0, answer


def quotas(connection: Connection) -> dict[str, float]:
    component = ComponentData(entity_type="client-id", match_type=1, match=None)
    entries = connection.call(DescribeClientQuotasRequest(components=[component]), 1).entries
    return {value.key: value.value for entry in entries for value in entry.values}


def has_heard(mixed: Mixed, broker_id: int, topic: str, partition: int) -> bool:
    """Whether a broker holds the last client to its quota, whose quota was set last."""
    with mixed.connect(broker_id) as connection:
        request = produce_request(topic, {partition: batch(b"")}, acks=1)
        return connection.call(request, 9, client_id=LAST).throttle_time_ms > 0


def produce(mixed: Mixed, broker_id: int, topic: str, partition: int, client_id: str) -> HeldUp:
    """Write without a pause."""
    with mixed.connect(broker_id) as connection:
        request = produce_request(topic, {partition: batch(bytes(SIZE))}, acks=1)
        answers = [connection.call(request, 9, client_id=client_id) for _ in range(REQUESTS)]
    assert not any(answer.responses[0].partition_responses[0].error_code for answer in answers)
    throttles = [answer.throttle_time_ms for answer in answers]
    return HeldUp(sum(each > 0 for each in throttles), sum(throttles))


def fetch(mixed: Mixed, broker_id: int, topic: str, partition: int, client_id: str) -> HeldUp:
    """Read everything, a record at a time."""
    throttles = []
    offset = 0
    with mixed.connect(broker_id) as connection:
        while offset < REQUESTS:
            request = fetch_request(topic, {partition: offset}, partition_max_bytes=1)
            answer = connection.call(request, 12, client_id=client_id)
            throttles.append(answer.throttle_time_ms)
            offset += len(answer.responses)
    return HeldUp(sum(each > 0 for each in throttles), sum(throttles))


def test_the_same_load_is_held_up_for_as_long_by_either_kind(mixed: Mixed) -> None:
    """The quotas are set at brokers of both kinds, each of which hears of both."""
    ids = {kind: mixed.one(kind) for kind in BOTH}
    mixed.create("held-up", [ids[OTTLA]], [ids[KAFKA]])
    partitions = {OTTLA: 0, KAFKA: 1}
    with mixed.connect(ids[OTTLA]) as ottla, mixed.connect(ids[KAFKA]) as kafka, ThreadPoolExecutor(4) as threads:
        set_quota(ottla, "producer_byte_rate", RATE)
        set_quota(kafka, "consumer_byte_rate", RATE)
        expected = {"producer_byte_rate": RATE, "consumer_byte_rate": RATE}
        set_quota(ottla, "producer_byte_rate", 1, client_id=LAST)
        for kind in BOTH:
            heard = functools.partial(has_heard, mixed, ids[kind], "held-up", partitions[kind])
            eventually(heard, PATIENCE_S)
        for each in (ottla, kafka):
            assert quotas(each) == expected
        for work in (produce, fetch):
            for attempt in range(ATTEMPTS):
                name = f"{work.__name__}-{attempt}"  # of whom nothing was counted yet
                done = {
                    kind: threads.submit(work, mixed, ids[kind], "held-up", partitions[kind], name) for kind in BOTH
                }
                held_up = {kind: future.result() for kind, future in done.items()}
                print(name, held_up)  # for docs/quotas.md
                if is_alike(held_up[OTTLA], held_up[KAFKA]):
                    break
            assert is_alike(held_up[OTTLA], held_up[KAFKA]), (work, held_up)
        for key in expected:
            set_quota(ottla, key, None)
        set_quota(kafka, "producer_byte_rate", None, client_id=LAST)
        eventually(lambda: not quotas(kafka), PATIENCE_S)
    assert mixed.troubles() == []
