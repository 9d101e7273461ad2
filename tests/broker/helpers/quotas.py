"""Clients with a quota, of brokers on a network in memory."""

from __future__ import annotations

from ottla.compat_tests.raw.requests import batch, produce_request
from ottla.replication.broker_client import BrokerClient
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from ottla.wire.schema import Message

from ...helpers.memory_cluster import MemoryCluster


def client(cluster: MemoryCluster, client_id: str, broker_id: int = 1) -> BrokerClient:
    return BrokerClient(cluster.network, f"broker{broker_id}", 9092, client_id, timeout=1000)


async def set_quota(
    admin: BrokerClient, key: str, value: float | None, user: str | None = "", client_id: str | None = ""
) -> None:
    """Set a quota of a user, a client id, or both; None stands for the default, an empty name for none."""
    named = (("user", user), ("client-id", client_id))
    entity = [EntityData(entity_type=kind, entity_name=name) for kind, name in named if name != ""]
    op = OpData(key=key, value=value or 0.0, remove=value is None)
    (answer,) = (await admin.send(AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=[op])]), 1)).entries
    assert answer.error_code == 0, answer


def produce_of(topic: str, length: int, acks: int = 1) -> Message:
    return produce_request(topic, {0: batch(bytes(length))}, acks)
