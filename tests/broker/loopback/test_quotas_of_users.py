"""Users who have logged in are held to their own quotas, all clients of one to the same, as stock clients see it."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

import ottla
from ottla.cli.tools.access.quotas import QuotaEntityOptions, set_quotas
from ottla.cli.tools.client import ClusterConnection

pytestmark = pytest.mark.slow

USERS = {"alice": "secret-a", "bob": "secret-b"}
SECOND = 10_000
"""What alice may write in a second."""


def longest_wait(broker: ottla.Broker, user: str, client_id: str, size: int) -> float:
    """For how many seconds, at most, a producer is told to wait that writes so many bytes."""
    told = [0.0]
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": USERS[user],
            "client.id": client_id,
            "throttle_cb": lambda event: told.append(event.throttle_time),
            "log_level": 0,
        }
    )
    producer.produce("t", bytes(size))
    assert producer.flush(20) == 0
    producer.poll(0)
    return max(told)


def test_a_users_clients_share_its_quota_and_another_user_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    with ottla.Broker(users=USERS) as broker:
        broker.create_topic("t")
        properties = tuple(f"{name}={value}" for name, value in broker.client_properties("bob").items())
        of_alice = QuotaEntityOptions("alice", False, None, False, None, False)
        set_quotas(
            ClusterConnection(broker.bootstrap_servers, None, properties), of_alice, [f"producer_byte_rate={SECOND}"]
        )
        assert capsys.readouterr().out == "Set producer_byte_rate of user alice.\n"
        assert longest_wait(broker, "alice", "one", 7 * SECOND) == 0
        assert longest_wait(broker, "bob", "one", 30 * SECOND) == 0
        assert longest_wait(broker, "alice", "another", 10 * SECOND) > 1
