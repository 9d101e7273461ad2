"""OAUTHBEARER with stock clients of Python: tokens of an identity provider, whose keys are in a file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError
from kafka.net.sasl.oauth import AbstractTokenProvider

import ottla
from ottla.tests.security.helpers.oauth_tokens import claims, ec_key, jwks, signed

pytestmark = pytest.mark.slow


def fresh(key: str = "first") -> str:
    now = int(time.time())
    return signed(claims(iat=now - 10, exp=now + 600, aud="kafka"), ec_key(key))


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    keys: Path = tmp_path_factory.mktemp("keys") / "keys.json"
    keys.write_bytes(jwks())
    properties = {
        "listeners": "SASL://127.0.0.1:0",
        "listener.security.protocol.map": "SASL:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        "auto.create.topics.enable": "true",
    }
    with ottla.Broker(properties=properties) as broker:
        yield broker.bootstrap_servers


class Tokens(AbstractTokenProvider):
    """What kafka-python asks for a token."""

    def __init__(self, key: str = "first") -> None:
        super().__init__()
        self._key = key

    def token(self) -> str:
        return fresh(self._key)


def of_kafka_python(bootstrap: str, key: str = "first") -> dict[str, object]:
    return {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": Tokens(key),
    }


def of_confluent(bootstrap: str, key: str = "first") -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (fresh(key), time.time() + 500),
            "log_level": 0,
        }
    )


def test_kafka_python_writes_and_reads(bootstrap: str) -> None:
    with KafkaProducer(**of_kafka_python(bootstrap)) as producer:
        producer.send("t", b"v").get(timeout=20)
    consumer = KafkaConsumer(
        "t", **of_kafka_python(bootstrap), auto_offset_reset="earliest", consumer_timeout_ms=20_000
    )
    assert next(consumer).value == b"v"
    consumer.close()


def test_kafka_python_hears_of_a_refusal(bootstrap: str) -> None:
    with pytest.raises(KafkaError):
        KafkaAdminClient(**of_kafka_python(bootstrap, "second"), bootstrap_timeout_ms=3000)


def test_librdkafka_lists_topics(bootstrap: str) -> None:
    client = of_confluent(bootstrap)
    client.poll(0)
    assert client.list_topics(timeout=20).brokers


def test_librdkafka_hears_of_a_refusal(bootstrap: str) -> None:
    client = of_confluent(bootstrap, "second")
    client.poll(0)
    with pytest.raises(KafkaException):
        client.list_topics(timeout=2)
