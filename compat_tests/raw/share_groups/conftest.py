"""The broker of these tests, whose groups are assigned at once and may have short sessions and short locks, and helpers.

Groups get their times and limits as their own settings (resource type GROUP).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests import brokers
from ottla.compat_tests.conftest import TopicMaker
from ottla.compat_tests.raw.requests import batch, produce
from ottla.compat_tests.raw.share_groups.wire_share import ShareConsumer, ShareGroup
from ottla.compat_tests.raw.transactional import GROUP, find_coordinator
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, Operator
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

PROPERTIES = {
    "group.share.assignment.interval.ms": "0",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.min.record.lock.duration.ms": "1000",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}
GROUP_RESOURCE = 32
Configure = Callable[..., None]
MakeGroup = Callable[..., ShareGroup]
Fill = Callable[..., None]
MakeConsumer = Callable[..., ShareConsumer]


@pytest.fixture(scope="session")
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the broker is."""
    kind = request.config.getoption("--broker")
    with brokers.process(kind, tmp_path_factory.mktemp("share-groups"), properties=PROPERTIES) as broker:
        yield broker.bootstrap


@pytest.fixture(scope="session")
def operator(address: str) -> Operator:
    """Makes topics there."""
    return Operator(address)


@pytest.fixture
def group_id(wire: Connection, fresh_name: Callable[[str], str], request: pytest.FixtureRequest) -> str:
    """A group id that was never used, and has a coordinator."""
    name = fresh_name("group-" + request.node.name)
    find_coordinator(wire, GROUP, name)
    return name


@pytest.fixture
def make_group(wire: Connection, group_id: str) -> MakeGroup:
    """``make_group(*topics)``: the test's group, whose members read these topics."""
    return lambda *topics: ShareGroup(wire, group_id, *topics)


@pytest.fixture
def configure(wire: Connection, group_id: str) -> Configure:
    """``configure(name=value)`` sets ``share.NAME`` of the test's group, with dots for underscores; it is known then."""

    def set_all(**values: object) -> None:
        wanted = {"share." + name.replace("_", "."): str(value) for name, value in values.items()}
        configs = [AlterableConfig(name=name, config_operation=0, value=value) for name, value in wanted.items()]
        resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group_id, configs=configs)
        (result,) = wire.call(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
        assert result.error_code == ErrorCode.NONE, result.error_message
        eventually(lambda: wanted.items() <= known().items())

    def known() -> dict[str, str]:
        resource = DescribeConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name=group_id, configuration_keys=None
        )
        (result,) = wire.call(DescribeConfigsRequest(resources=[resource]), 4).results
        return {each.name: each.value for each in result.configs}

    return set_all


@pytest.fixture
def earliest(configure: Configure) -> None:
    """The test's group begins with the first record of a partition."""
    configure(auto_offset_reset="earliest")


@pytest.fixture
def fill(wire: Connection) -> Fill:
    """``fill(topic, 3, 4)`` writes a batch of three records and one of four."""

    def write(topic: str, *sizes: int, partition: int = 0) -> None:
        for size in sizes:
            answer = produce(wire, topic, batch(*(b"%d" % n for n in range(size))), partition=partition)
            assert answer.error_code == ErrorCode.NONE

    return write


@pytest.fixture
def ten(make_topic: TopicMaker, fill: Fill) -> str:
    """A topic of one partition with one batch of ten records."""
    name = make_topic()
    fill(name, 10)
    return name


@pytest.fixture
def make_consumer(earliest: None, make_group: MakeGroup, connections: Callable[[], Connection]) -> MakeConsumer:
    """``make_consumer(topic)``: a consumer over a connection of its own, in the test's group, which begins with the first record.

    The states of the topic's partitions are initialized; later ones are B, C …, or have a given id.
    """
    groups: dict[str, ShareGroup] = {}
    ids = iter("ABCDEFGHIJKLMNOPQRSTUVWXYZ")

    def make(topic: str, member_id: str | None = None) -> ShareConsumer:
        if topic not in groups:
            groups[topic] = make_group(topic)
            groups[topic].initialize(topic)
        return groups[topic].consumer(member_id or next(ids), topic, connections())

    return make
