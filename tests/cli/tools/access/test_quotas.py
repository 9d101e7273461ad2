"""``ottla quotas``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ottla

from ...helpers.command import Command

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A broker of its own: the quotas here hold for every client."""
    with ottla.Broker() as broker:
        yield broker.bootstrap_servers


def test_quotas_are_set_described_and_unset(command: Command) -> None:
    assert command.rows("quotas", "describe") == []
    set_for_alice = "quotas", "set", "--user", "alice"
    assert command(*set_for_alice, "producer_byte_rate=1048576", "request_percentage=12.5") == (
        "Set producer_byte_rate, request_percentage of user alice.\n"
    )
    command(*set_for_alice, "--client-id", "batch", "producer_byte_rate=1000")
    command("quotas", "set", "--user-default", "--client-id-default", "consumer_byte_rate=2000")
    command("quotas", "set", "--ip", "127.0.0.7", "connection_creation_rate=50")
    assert command.rows("quotas", "describe") == [
        ["-", "-", "127.0.0.7", "connection_creation_rate", "50"],
        ["<default>", "<default>", "-", "consumer_byte_rate", "2000"],
        ["alice", "-", "-", "producer_byte_rate", "1048576"],
        ["alice", "-", "-", "request_percentage", "12.5"],
        ["alice", "batch", "-", "producer_byte_rate", "1000"],
    ]
    (of_both,) = command.json("quotas", "describe", "--user", "alice", "--client-id", "batch")
    assert of_both == {"user": "alice", "client_id": "batch", "ip": None, "quota": "producer_byte_rate", "value": 1000}
    command("quotas", "unset", "--user", "alice", "producer_byte_rate")
    assert [row[3] for row in command.rows("quotas", "describe", "--user", "alice")] == [
        "request_percentage",
        "producer_byte_rate",
    ]


def test_quotas_that_are_refused(command: Command) -> None:
    refused = command.refused
    assert "producer_byte_rate cannot be a fractional value" in refused(
        "quotas", "set", "--user", "alice", "producer_byte_rate=1.5"
    )
    assert "Invalid configuration key" in refused("quotas", "set", "--ip", "127.0.0.1", "producer_byte_rate=1")
    why = refused("quotas", "set", "--user", "alice", "producer_byte_rat=1", code=2)
    assert why == "there is no quota producer_byte_rat; did you mean producer_byte_rate?"
    refused("quotas", "set", "producer_byte_rate=1", code=2)
    refused("quotas", "set", "--user", "alice", "producer_byte_rate=much", code=2)
    refused("quotas", "set", "--user", "alice", "--ip", "127.0.0.1", "producer_byte_rate=1", code=2)
    refused("quotas", "describe", "--user", "alice", "--user-default", code=2)
