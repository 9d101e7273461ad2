"""The broker of these tests, whose share groups have short heartbeats, and a group that begins with the first record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests import brokers
from ottla.compat_tests.conftest import TopicMaker
from ottla.compat_tests.java.tools import KafkaTools
from ottla.compat_tests.raw.requests import batch, produce
from ottla.compat_tests.share_consumers.reader import ShareReader
from ottla.compat_tests.wire_client import Operator, connect
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

PROPERTIES = {
    "group.share.heartbeat.interval.ms": "300",
    "group.share.min.heartbeat.interval.ms": "300",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.record.lock.duration.ms": "1000",
}
GROUP_RESOURCE = 32
Configure = Callable[..., None]
MakeReader = Callable[..., ShareReader]


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the broker is."""
    kind = request.config.getoption("--broker")
    with brokers.process(kind, tmp_path_factory.mktemp("java-share-groups"), properties=PROPERTIES) as broker:
        yield broker.bootstrap


@pytest.fixture(scope="session")
def operator(bootstrap: str) -> Operator:
    """Makes topics there."""
    return Operator(bootstrap)


@pytest.fixture
def configure(bootstrap: str, group_id: str) -> Configure:
    """``configure(name=value)`` sets ``share.NAME`` of the test's group, with dots for underscores."""

    def set_all(**values: object) -> None:
        configs = [
            AlterableConfig(name="share." + name.replace("_", "."), config_operation=0, value=str(value))
            for name, value in values.items()
        ]
        resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group_id, configs=configs)
        with connect(bootstrap) as wire:
            (result,) = wire.call(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
        assert result.error_code == ErrorCode.NONE, result.error_message

    return set_all


@pytest.fixture(autouse=True)
def earliest(configure: Configure) -> None:
    """The test's group begins with the first record of a partition."""
    configure(auto_offset_reset="earliest")


@pytest.fixture
def filled(make_topic: TopicMaker, bootstrap: str) -> str:
    """A topic of two partitions with ten records each, ``0`` to ``9``, in batches of five."""
    topic = make_topic(2)
    with connect(bootstrap) as wire:
        for partition in (0, 1):
            values = [b"%d" % number for number in range(10)]
            produce(wire, topic, batch(*values[:5]), batch(*values[5:]), partition=partition)
    return topic


@pytest.fixture
def share_client() -> str:
    """Whose consumers ``make_reader`` makes."""
    return "java"


@pytest.fixture
def make_reader(share_client: str, bootstrap: str, group_id: str, tmp_path: Path) -> Iterator[MakeReader]:
    """``make_reader(topic, name=value)``: a consumer of the topic in the test's group."""
    made: list[ShareReader] = []

    def make(topic: str, **settings: object) -> ShareReader:
        made.append(ShareReader(share_client, bootstrap, group_id, tmp_path / f"reader-{len(made)}.log", **settings))
        made[-1].subscribe(topic)
        return made[-1]

    yield make
    for each in made:
        each.kill()


@pytest.fixture
def tools(bootstrap: str, tmp_path: Path) -> KafkaTools:
    """Kafka's command-line tools on that broker."""
    return KafkaTools(bootstrap, tmp_path)
