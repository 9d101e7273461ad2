"""A broker for the tests of a file, and a client that sends any request at any version and reads the response."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.compat_tests.wire_client import Connection
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

from ..helpers.zookeeper_broker import QUORUM, NewBroker, StartedBroker, broker_factory

Send = Callable[..., Any]
"""(request, version) -> response."""

MakeTopic = Callable[..., tuple[str, bytes]]
"""(partitions=1, **configs with _ for .) -> (name, id) of a new topic."""

_topic_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def properties() -> dict[str, str]:
    """Properties of the file's broker; a file that needs others overrides this fixture."""
    return {}


@pytest.fixture(scope="module")
def cluster_kind() -> str:
    """The kind of cluster. A file of what controllers handle imports ``on_both_kinds`` in place of this."""
    return QUORUM


@pytest.fixture(scope="module")
def new_broker(cluster_kind: str) -> NewBroker:
    """Makes brokers that are not started yet."""
    return broker_factory(cluster_kind)


@pytest.fixture(scope="module")
def broker(new_broker: NewBroker, properties: dict[str, str]) -> Iterator[StartedBroker]:
    with new_broker(properties=properties) as running:
        yield running


@pytest.fixture
def send(broker: StartedBroker) -> Iterator[Send]:
    client = Connection(broker.bootstrap_servers)
    yield client.call
    client.close()


@pytest.fixture
def make_topic(send: Send) -> MakeTopic:
    def make(partitions: int = 1, **configs: str) -> tuple[str, bytes]:
        configs = {"retention_ms": "-1", **configs}  # records of tests may be old
        new = CreatableTopic(
            name=f"made-{next(_topic_numbers)}",
            num_partitions=partitions,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()],
        )
        (created,) = send(CreateTopicsRequest(topics=[new], timeout_ms=10_000), 7).topics
        assert created.error_code == 0
        return new.name, created.topic_id

    return make


@pytest.fixture
def connect() -> Iterator[Callable[[str], Send]]:
    """Opens more connections, to any broker."""
    clients: list[Connection] = []

    def connect(bootstrap_servers: str) -> Send:
        clients.append(Connection(bootstrap_servers))
        return clients[-1].call

    yield connect
    for client in clients:
        client.close()
