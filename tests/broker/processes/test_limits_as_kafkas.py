"""Limits on the connections of a listener, as a client sees them: the same at Ottla and at Apache Kafka.

What it was like on each is printed; docs/listeners.md has some of it.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.compat_tests.brokers import BrokerProcess, KafkaProcess, OttlaProcess
from ottla.compat_tests.session import eventually
from ottla.testing.held_port import HeldPort
from ottla.wire.codec import encode_bytes
from ottla.wire.headers import encode_request_header
from ottla.wire.messages.api_versions import ApiVersionsRequest

pytestmark = pytest.mark.slow

PER_IP, OF_LISTENER, RATE = 4, 3, 5
SOON_S, PATIENCE_S = 1.0, 20.0
FULL, PACED, FEW = "127.0.0.2", "127.0.0.3", "127.0.0.4"
"""Where clients of each case come from: a limit per address is one of the others' not."""


class Limited:
    """A broker with a listener for brokers, INSIDE, and three for clients with a limit each."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.process: BrokerProcess = (OttlaProcess if kind == "ottla" else KafkaProcess)(folder)
        self._held = {name: HeldPort() for name in ("FULL", "PACED", "FEW")}
        self.ports = {"INSIDE": self.process.port, **{name: held.number for name, held in self._held.items()}}
        listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in self.ports.items())
        self.process.properties |= {
            "listeners": listeners,
            "advertised.listeners": listeners,
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in self.ports),
            "inter.broker.listener.name": "INSIDE",
            "listener.name.full.max.connections": str(OF_LISTENER),
            "listener.name.paced.max.connection.creation.rate": str(RATE),
            "max.connections.per.ip.overrides": f"{FEW}:{PER_IP}",
        }
        if isinstance(self.process, KafkaProcess):
            controller = f",CONTROLLER://127.0.0.1:{self.process.controller_port}"
            self.process.properties["listeners"] += controller
            self.process.properties["listener.security.protocol.map"] += ",CONTROLLER:PLAINTEXT"

    def connect(self, listener: str, source: str) -> Client:
        return Client(self.ports[listener], source)

    def start(self) -> None:
        """Start it, and wait for all of its listeners: Kafka binds one after the other, and is ready with the first."""
        self.process.start()
        for port in self.ports.values():
            eventually(lambda port=port: _listens(port), PATIENCE_S)  # type: ignore[misc]

    def close(self) -> None:
        self.process.close()
        for held in self._held.values():
            held.close()


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


class Client:
    """A connection that asks for the versions of APIs."""

    def __init__(self, port: int, source: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S, source_address=(source, 0))
        request = ApiVersionsRequest()
        body = encode_request_header(request.api_key, 0, 1, "limits") + encode_bytes(request, 0)
        try:
            self._socket.sendall(len(body).to_bytes(4) + body)
        except OSError:
            pass  # it is closed already

    def becomes(self, seconds: float) -> str:
        """``answered`` or ``closed``; ``waiting`` if it is neither within the time."""
        if not select.select([self._socket], [], [], seconds)[0]:
            return "waiting"
        try:
            return "answered" if self._socket.recv(1 << 16) else "closed"
        except ConnectionResetError:
            return "closed"

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module", params=["ottla", "kafka"])
def limited(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limited]:
    broker = Limited(request.param, tmp_path_factory.mktemp("limited"))
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


def test_of_one_address_those_beyond_are_closed_at_once(limited: Limited) -> None:
    clients = [limited.connect("FEW", FEW) for _ in range(PER_IP + 2)]
    became = [client.becomes(PATIENCE_S) for client in clients]
    print(limited.kind, "max.connections.per.ip", became)
    assert became == ["answered"] * PER_IP + ["closed"] * 2
    clients[0].close()

    def again() -> bool:
        client = limited.connect("FEW", FEW)
        is_in = client.becomes(PATIENCE_S) == "answered"
        client.close()
        return is_in

    eventually(again, PATIENCE_S)
    for client in clients:
        client.close()


def test_who_comes_to_a_full_listener_waits_until_another_goes(limited: Limited) -> None:
    clients = [limited.connect("FULL", FULL) for _ in range(OF_LISTENER)]
    assert [client.becomes(PATIENCE_S) for client in clients] == ["answered"] * OF_LISTENER
    late = limited.connect("FULL", FULL)
    assert late.becomes(SOON_S) == "waiting"
    elsewhere = limited.connect("INSIDE", FULL)
    assert elsewhere.becomes(PATIENCE_S) == "answered", "another listener is held up"
    clients[0].close()
    began = time.monotonic()
    assert late.becomes(PATIENCE_S) == "answered"
    print(limited.kind, f"max.connections: in {time.monotonic() - began:.2f} s after another has gone")
    for client in (*clients, late, elsewhere):
        client.close()


def test_those_that_come_too_fast_are_accepted_at_the_pace(limited: Limited) -> None:
    """All at once, more than the pace allows in its first seconds: the last ones wait for as long as their number takes."""
    number = 24 * RATE
    began = time.monotonic()
    clients = [limited.connect("PACED", PACED) for _ in range(number)]
    became = [client.becomes(PATIENCE_S * 3) for client in clients]
    seconds = time.monotonic() - began
    print(limited.kind, f"max.connection.creation.rate: {number} connections in {seconds:.1f} s")
    assert became == ["answered"] * number
    assert seconds > 1, "none has waited"
    for client in clients:
        client.close()
