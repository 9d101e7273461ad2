"""Delegation tokens in a cluster of a broker of Kafka 3.9 and one of Ottla, which know each other by SASL/PLAIN.

A token that either makes is used, renewed and ended at the other, and stands in ZooKeeper as Kafka writes it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import kazoo.client
import pytest

from ottla.compat_tests.clients.security import Security
from ottla.compat_tests.clusters import OttlaWithOneKafka
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection
from ottla.compat_tests.zookeeper import ZooKeeperProcess
from ottla.security.scram import ScramMechanism
from ottla.security.scram_exchange import ScramClient
from ottla.wire.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from ottla.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

pytestmark = pytest.mark.slow

_MODULES = "org.apache.kafka.common.security"
PROPERTIES = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": (
        f'{_MODULES}.plain.PlainLoginModule required username="admin" password="admins" user_admin="admins" '
        'user_alice="alices";'
    ),
    "listener.name.plaintext.scram-sha-256.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
    "delegation.token.secret.key": "the brokers' secret",
}


def of(name: str) -> Security:
    return Security("SASL_PLAINTEXT", "PLAIN", name, f"{name}s")


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeperProcess
) -> Iterator[OttlaWithOneKafka]:
    cluster = OttlaWithOneKafka(
        tmp_path_factory.mktemp("tokens"), 2, zookeeper=zookeeper_server, root="/mixed-tokens", properties=PROPERTIES
    )
    cluster.security = of("admin")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


def is_let_in(address: str, token: Any) -> bool:
    """By SCRAM, with the token's password."""
    connection = Connection(address, security=Security("SASL_PLAINTEXT"))
    try:
        assert connection.call(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1).error_code == 0
        password = base64.b64encode(token.hmac).decode()
        client = ScramClient(ScramMechanism.SHA_256, token.token_id, password, is_token=True)
        message = client.respond(b"")
        while message is not None:
            response = connection.call(SaslAuthenticateRequest(auth_bytes=message), 2)
            if response.error_code:
                return False
            message = client.respond(bytes(response.auth_bytes))
        return True
    finally:
        connection.close()


def known(connection: Connection) -> dict[str, tuple[bytes, int]]:
    """HMAC and end of each token that a client sees, by its id."""
    answer = connection.call(DescribeDelegationTokenRequest(owners=None), 3)
    assert answer.error_code == 0
    return {token.token_id: (bytes(token.hmac), token.expiry_timestamp) for token in answer.tokens}


def stored(zookeeper: ZooKeeperProcess, token_id: str) -> bytes:
    """What is in ZooKeeper of a token."""
    client = kazoo.client.KazooClient(f"{zookeeper.address}/mixed-tokens")
    client.start()
    try:
        return bytes(client.get(f"/delegation_token/tokens/{token_id}")[0])
    finally:
        client.stop()
        client.close()


@pytest.mark.parametrize("first", [1, 2], ids=["ottla", "kafka"])
def test_a_token_of_one_kind_is_used_at_the_other(
    cluster: OttlaWithOneKafka, zookeeper_server: ZooKeeperProcess, first: int
) -> None:

    def is_as_kafka_writes_it(token: Any) -> None:
        expected = (
            f'{{"issueTimestamp":{token.issue_timestamp_ms},"renewers":["User%3Aa%2C%20%2A%7Eb"],'
            f'"tokenRequester":"User%3Aalice","tokenId":"{token.token_id}","owner":"User%3Aalice",'
            f'"expiryTimestamp":{token.expiry_timestamp_ms},"maxTimestamp":{token.max_timestamp_ms},"version":3}}'
        )
        assert stored(zookeeper_server, token.token_id) == expected.encode()

    check_token([cluster.broker(first).address, cluster.broker(3 - first).address], is_as_kafka_writes_it)


def check_token(addresses: Sequence[str], look: Callable[[Any], None]) -> None:
    """A token that is made at the first broker is used, renewed and ended at the second. ``look`` is given it."""
    here, there = (Connection(address, security=of("alice")) for address in addresses)
    renewer = CreatableRenewers(principal_type="User", principal_name="a, *~b")
    token = here.call(CreateDelegationTokenRequest(renewers=[renewer], max_lifetime_ms=3_600_000), 3)
    assert token.error_code == 0
    known_as = bytes(token.hmac), token.expiry_timestamp_ms
    eventually(lambda: known(there) == known(here) == {token.token_id: known_as})
    assert is_let_in(addresses[1], token) and is_let_in(addresses[0], token)
    look(token)
    renewed = there.call(RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=60_000), 2)
    assert renewed.error_code == 0
    eventually(lambda: known(here) == {token.token_id: (known_as[0], renewed.expiry_timestamp_ms)})
    ended = there.call(ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1), 2)
    assert ended.error_code == 0
    eventually(lambda: known(here) == known(there) == {})  # either may learn it first
    assert not is_let_in(addresses[0], token) and not is_let_in(addresses[1], token)
    here.close()
    there.close()
