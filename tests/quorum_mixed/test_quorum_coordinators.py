"""Transactions of version 2, groups and producer ids in a cluster of KRaft, with coordinators of either kind."""

from __future__ import annotations

import pytest

from ottla.compat_tests.java.tools import KafkaTools
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.records import iter_batches

from ..mixed.helpers.mixed import BOTH
from ..mixed.test_mixed_coordinators import (
    TRANSACTION,
    coordinated_by,
    producer_ids,
    test_a_group_goes_on_while_its_coordinator_moves,
    test_a_transaction_goes_on_while_its_coordinator_moves,
    test_transactions_over_partitions_of_both_kinds,
)
from .helpers.on_quorum import QuorumMixed

__all__ = [
    "test_a_group_goes_on_while_its_coordinator_moves",
    "test_a_transaction_goes_on_while_its_coordinator_moves",
    "test_transactions_over_partitions_of_both_kinds",
]

pytestmark = pytest.mark.slow


def test_no_producer_id_is_given_twice(mixed: QuorumMixed) -> None:
    given: list[int] = []
    for broker_id in mixed.ids:
        given += producer_ids(mixed, broker_id, 1_100)
    active = mixed.active()
    for restarted in (active, mixed.one("ottla")):
        mixed.cluster.restart_broker(restarted)
        for broker_id in mixed.ids:
            given += producer_ids(mixed, broker_id, 10)
    assert len(set(given)) == len(given)


def test_both_kinds_tell_of_the_same_features(mixed: QuorumMixed) -> None:
    told = []
    for broker_id in mixed.ids:
        with mixed.connect(broker_id) as connection:
            answer = connection.call(ApiVersionsRequest(client_software_name="tests", client_software_version="1"), 4)
        told.append({(each.name, each.max_version_level, each.min_version_level) for each in answer.finalized_features})
    assert told.count(told[0]) == len(told)
    assert ("transaction.version", 2, 2) in told[0]


@pytest.mark.parametrize("coordinating", BOTH)
def test_the_java_client_has_transactions_of_version_2(mixed: QuorumMixed, coordinating: str, topic: str) -> None:
    """Which each have an epoch of their producer, on partitions led by both kinds."""
    mixed.create(topic, *(mixed.replicas_from(each) for each in mixed.ids))
    transactional_id = coordinated_by(mixed, TRANSACTION, mixed.one(coordinating), topic)
    tools = KafkaTools(mixed.bootstrap, mixed.cluster.broker(1).folder)
    count = 2_000  # in small batches, so that every partition has some
    words = ("--topic", topic, "--num-records", str(count), "--record-size", "100", "--throughput", "1000")
    settings = ("--producer-props", f"bootstrap.servers={mixed.bootstrap}", "linger.ms=0", "batch.size=1000")
    tools.run(
        "producer-perf-test",
        *words,
        *settings,
        "--transactional-id",
        transactional_id,
        "--transaction-duration-ms",
        "100",
    )
    epochs, records = set(), 0
    for partition in range(len(mixed.ids)):
        batches = list(iter_batches(mixed.wait_same(topic, partition)))
        epochs |= {batch.producer_epoch for batch in batches if not batch.is_control}
        records += sum(len(list(batch.records())) for batch in batches if not batch.is_control)
        ended = [batch.producer_epoch for batch in batches if batch.is_control]
        assert ended and len(ended) == len(set(ended)), "each has one marker here"
    assert records == count and len(epochs) >= 3
