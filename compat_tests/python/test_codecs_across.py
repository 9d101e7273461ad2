"""What one client compressed, every other one reads: the framings of snappy and lz4 differ between libraries."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.compat_tests.clients.registry import CLIENTS, JAVA_SNAPPY
from ottla.compat_tests.session import ClientSession

CODECS = ("gzip", "snappy", "lz4", "zstd")
# More than one block of every framing.
VALUES = [b"short", b"", bytes(range(256)) * 600, b"".join(b"%07d," % number for number in range(20_000))]


def seen_by(reader: str) -> list[bytes | None]:
    """VALUES as a client reads them."""
    return [CLIENTS[reader].sees(value) for value in VALUES]


@pytest.mark.capability("every codec is read by every client")
@pytest.mark.parametrize("reader", CLIENTS)
def test_read_by(client: ClientSession, reader: str, topic: str, sessions: Callable[[str], ClientSession]) -> None:
    codecs = [codec for codec in CODECS if codec != "snappy" or JAVA_SNAPPY not in CLIENTS[reader].lacks]
    for codec in codecs:
        client.produce(topic, VALUES, compression=codec, linger_ms=20)
    messages = sessions(reader).read(topic, len(VALUES) * len(codecs))
    assert [message.value for message in messages] == seen_by(reader) * len(codecs)


@pytest.mark.capability("broker recompresses (compression.type)")
@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "lz4", "zstd"])
def test_broker_recompresses(client: ClientSession, make_topic: Callable[..., str], codec: str) -> None:
    check_recompressed(client, make_topic, codec)


@pytest.mark.capability(JAVA_SNAPPY)
def test_broker_recompresses_with_snappy(client: ClientSession, make_topic: Callable[..., str]) -> None:
    check_recompressed(client, make_topic, "snappy")


def check_recompressed(client: ClientSession, make_topic: Callable[..., str], codec: str) -> None:
    """What the broker has compressed itself, with ``codec``, the client reads."""
    topic = make_topic(**{"compression.type": codec})
    assert client.produce(topic, VALUES, compression="gzip", linger_ms=20) == [0, 1, 2, 3]
    assert client.produce(topic, VALUES, linger_ms=20) == [4, 5, 6, 7]
    assert [message.value for message in client.read(topic, 8)] == seen_by(client.name) * 2
