"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources, at every version.

Of the list of what other brokers got wrong, here are: every setting with its default, source and synonyms; what was read
back can be set; AlterConfigs replaces; APPEND and SUBTRACT; ``cleanup.policy`` is exactly what was set. What is set on brokers
is in test_broker_configs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from ottla.base.errors import ErrorCode
from ottla.handlers import describe_configs
from ottla.handlers.call import Call
from ottla.handlers.connection_context import ConnectionContext
from ottla.log.settings import LogSettings
from ottla.wire.messages import alter_configs, incremental_alter_configs
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest

from ..helpers.memory_cluster import running
from ..helpers.zookeeper_broker import QUORUM, NewBroker, on_both_kinds

__all__ = ["on_both_kinds"]

Send = Callable[..., Any]

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
TOPIC_CONFIG, STATIC_BROKER_CONFIG, DEFAULT_CONFIG, CLIENT_METRICS_CONFIG, GROUP_CONFIG = 1, 4, 5, 7, 8
DEFAULTS_OF_SUBSCRIPTIONS = {"interval.ms": "300000", "match": "", "metrics": ""}
SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.fixture(scope="module")
def properties() -> dict[str, str]:
    return {"log.retention.hours": "48", "message.max.bytes": "2000000"}


@pytest.fixture
def topic(send: Send, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)[:200]
    response = send(CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)]), 4)
    assert response.topics[0].error_code == 0
    return name


def describe(send: Send, kind: int, name: str, version: int = 4, **arguments: Any) -> DescribeConfigsResult:
    keys = arguments.pop("keys", None)
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    (result,) = send(DescribeConfigsRequest(resources=[resource], **arguments), version).results
    assert isinstance(result, DescribeConfigsResult)
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def entries(send: Send, kind: int, name: str, **arguments: Any) -> dict[str, DescribeConfigsResourceResult]:
    result = describe(send, kind, name, **arguments)
    assert (result.error_code, result.error_message) == (0, "")
    return {entry.name: entry for entry in result.configs}


def overrides(send: Send, topic: str) -> dict[str, str | None]:
    found = entries(send, TOPIC, topic).values()
    return {entry.name: entry.value for entry in found if entry.config_source == TOPIC_CONFIG}


def replace(
    send: Send, kind: int, name: str, version: int = 2, validate_only: bool = False, **values: str | None
) -> int:
    configs = [alter_configs.AlterableConfig(name=k.replace("_", "."), value=v) for k, v in values.items()]
    resource = alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = alter_configs.AlterConfigsRequest(resources=[resource], validate_only=validate_only)
    (response,) = send(request, version).responses
    assert (response.error_message is None) == (response.error_code == 0)
    return int(response.error_code)


def change(
    send: Send,
    kind: int,
    name: str,
    *changes: tuple[str, int, str | None],
    version: int = 1,
    validate_only: bool = False,
) -> int:
    configs = [
        incremental_alter_configs.AlterableConfig(name=n, config_operation=operation, value=value)
        for n, operation, value in changes
    ]
    resource = incremental_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[resource], validate_only=validate_only
    )
    (response,) = send(request, version).responses
    assert (response.error_message is None) == (response.error_code == 0)
    return int(response.error_code)


@pytest.mark.parametrize("version", range(1, 5))
def test_a_topic_shows_every_setting(send: Send, topic: str, version: int) -> None:
    found = entries(send, TOPIC, topic, version=version, include_synonyms=True)
    assert set(found) == set(LogSettings.topic_settings())
    assert not any(entry.read_only or entry.is_sensitive for entry in found.values())
    policy = found["cleanup.policy"]
    assert (policy.value, policy.config_source) == ("delete", DEFAULT_CONFIG)
    assert [(s.name, s.value, s.source) for s in policy.synonyms] == [("log.cleanup.policy", "delete", DEFAULT_CONFIG)]
    assert policy.config_type == (7 if version >= 3 else 0)


def test_values_of_the_brokers_file_are_told_as_such(send: Send, topic: str) -> None:
    found = entries(send, TOPIC, topic, include_synonyms=True)
    limit = found["max.message.bytes"]
    assert (limit.value, limit.config_source) == ("2000000", STATIC_BROKER_CONFIG)
    assert [(s.name, s.value, s.source) for s in limit.synonyms] == [
        ("message.max.bytes", "2000000", STATIC_BROKER_CONFIG),
        ("message.max.bytes", "1048588", DEFAULT_CONFIG),
    ]
    retention = found["retention.ms"]
    assert (retention.value, retention.config_source) == (str(48 * 3_600_000), STATIC_BROKER_CONFIG)


def test_an_override_stands_before_what_it_overrides(send: Send, topic: str) -> None:
    assert change(send, TOPIC, topic, ("max.message.bytes", SET, "3")) == 0
    limit = entries(send, TOPIC, topic, include_synonyms=True)["max.message.bytes"]
    assert (limit.value, limit.config_source) == ("3", TOPIC_CONFIG)
    assert [(s.name, s.value) for s in limit.synonyms] == [
        ("max.message.bytes", "3"),
        ("message.max.bytes", "2000000"),
        ("message.max.bytes", "1048588"),
    ]
    assert entries(send, TOPIC, topic)["max.message.bytes"].synonyms == []


def test_documentation_comes_when_asked_for(send: Send, topic: str) -> None:
    with_text = entries(send, TOPIC, topic, include_documentation=True)
    assert all(entry.documentation for entry in with_text.values())
    assert not any(entry.documentation for entry in entries(send, TOPIC, topic).values())


def test_keys_pick_settings(send: Send, topic: str) -> None:
    assert list(entries(send, TOPIC, topic, keys=["retention.ms", "nope"])) == ["retention.ms"]
    assert len(entries(send, TOPIC, topic, keys=[])) > 30


def test_the_broker_shows_every_property_it_uses(send: Send) -> None:
    found = entries(send, BROKER, "1", include_synonyms=True, include_documentation=True)
    assert {
        "num.partitions",
        "log.segment.bytes",
        "group.max.session.timeout.ms",
        "listeners",
        "max.connections",
    } <= set(found)
    assert all(entry.documentation for entry in found.values())
    assert (found["log.retention.hours"].value, found["log.retention.hours"].config_source) == (
        "48",
        STATIC_BROKER_CONFIG,
    )
    assert (found["log.retention.ms"].value, found["log.retention.minutes"].value) == (None, None)
    assert (found["num.partitions"].value, found["num.partitions"].config_source) == ("1", DEFAULT_CONFIG)
    assert list(entries(send, BROKER, "1", keys=["num.partitions"])) == ["num.partitions"]


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (BROKER, "--1", ErrorCode.INVALID_REQUEST),
        (BROKER, "²", ErrorCode.INVALID_REQUEST),
        (BROKER, "1_0", ErrorCode.INVALID_REQUEST),
        (BROKER, "9" * 20, ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (LOGGER, "2", ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
        (0, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_that_are_not_there(send: Send, kind: int, name: str, code: ErrorCode) -> None:
    for version in range(1, 5):
        result = describe(send, kind, name, version)
        assert (result.error_code, result.configs) == (code, [])
        assert result.error_message


@pytest.mark.parametrize(("kind", "name"), [(BROKER, ""), (LOGGER, "1")])
def test_resources_without_settings(send: Send, cluster_kind: str, kind: int, name: str) -> None:
    is_set_from_the_start = cluster_kind == QUORUM and kind == BROKER
    assert entries(send, kind, name).keys() == ({"min.insync.replicas"} if is_set_from_the_start else set())


def test_a_group_and_a_subscription_that_nothing_is_set_on_have_the_defaults(send: Send) -> None:
    group = entries(send, GROUP, "none", include_synonyms=True, include_documentation=True)
    assert {entry.config_source for entry in group.values()} == {DEFAULT_CONFIG}
    timeout = group["consumer.session.timeout.ms"]
    assert (timeout.value, timeout.config_type, timeout.read_only) == ("45000", 3, False)
    (behind,) = timeout.synonyms
    assert (behind.name, behind.value) == ("group.consumer.session.timeout.ms", "45000")
    subscription = entries(send, CLIENT_METRICS, "none", include_synonyms=True, include_documentation=True)
    found = {name: (each.value, each.config_source, each.synonyms) for name, each in subscription.items()}
    assert found == {name: (value, DEFAULT_CONFIG, []) for name, value in DEFAULTS_OF_SUBSCRIPTIONS.items()}
    assert all(entry.documentation for entry in (*group.values(), *subscription.values()))


@pytest.mark.parametrize("cluster_kind", [QUORUM], indirect=True)
def test_behind_the_config_of_a_group_are_the_brokers_settings(send: Send) -> None:
    config, setting = "consumer.assignment.interval.ms", "group.consumer.assignment.interval.ms"
    assert change(send, GROUP, "g", (config, SET, "4000")) == 0
    for name, value in (("", "2000"), ("1", "3000")):
        assert change(send, BROKER, name, (setting, SET, value)) == 0
    behind = [(setting, "3000", 2), (setting, "2000", 3), (setting, "1000", DEFAULT_CONFIG)]
    for group, own in (("g", [(config, "4000", GROUP_CONFIG)]), ("other", [])):
        entry = entries(send, GROUP, group, include_synonyms=True, keys=[config])[config]
        assert [(s.name, s.value, s.source) for s in entry.synonyms] == [*own, *behind]
        assert (entry.value, entry.config_source) == (*own, *behind)[0][1:]
    for name in ("1", ""):
        assert change(send, BROKER, name, (setting, SET, "15001")) == ErrorCode.INVALID_REQUEST
        assert change(send, BROKER, name, (setting, DELETE, None)) == 0
    assert change(send, GROUP, "g", (config, DELETE, None)) == 0


@pytest.mark.parametrize("cluster_kind", [QUORUM], indirect=True)
def test_a_quorum_keeps_configs_of_groups_and_of_subscriptions(send: Send) -> None:
    for kind, config, value, source in (
        (GROUP, "consumer.heartbeat.interval.ms", "6000", GROUP_CONFIG),
        (CLIENT_METRICS, "interval.ms", "60000", CLIENT_METRICS_CONFIG),
    ):
        assert change(send, kind, "kept", (config, SET, value)) == 0
        entry = entries(send, kind, "kept", include_synonyms=True)[config]
        assert (entry.value, entry.config_source) == (value, source)
        assert [(s.value, s.source) for s in entry.synonyms][:1] == [(value, source)]
        assert listed(send, 1, kind) == [(kind, "kept")]
        assert change(send, kind, "kept", (config, DELETE, None)) == 0
        assert listed(send, 1, kind) == []
    assert change(send, GROUP, "kept", ("consumer.heartbeat.interval.ms", SET, "1")) == ErrorCode.INVALID_CONFIG
    assert change(send, CLIENT_METRICS, "kept", ("interval.ms", SET, "1")) == ErrorCode.INVALID_REQUEST


def test_what_was_read_back_can_be_set(send: Send, topic: str) -> None:
    found = entries(send, TOPIC, topic)
    assert change(send, TOPIC, topic, *((name, SET, entry.value) for name, entry in found.items())) == 0
    assert overrides(send, topic) == {name: entry.value for name, entry in found.items()}
    again = {name.replace(".", "_"): entry.value for name, entry in found.items()}
    assert replace(send, TOPIC, topic, **again) == 0
    assert entries(send, TOPIC, topic).keys() == found.keys()


@pytest.mark.parametrize("version", range(3))
def test_alter_replaces_every_override(send: Send, topic: str, version: int) -> None:
    assert replace(send, TOPIC, topic, version, retention_ms="5", cleanup_policy="compact") == 0
    assert overrides(send, topic) == {"retention.ms": "5", "cleanup.policy": "compact"}
    assert replace(send, TOPIC, topic, version, segment_bytes="1048576") == 0
    assert overrides(send, topic) == {"segment.bytes": "1048576"}
    assert replace(send, TOPIC, topic, version) == 0
    assert overrides(send, topic) == {}


@pytest.mark.parametrize("version", range(2))
def test_incremental_changes_leave_the_rest(send: Send, topic: str, version: int) -> None:
    assert change(send, TOPIC, topic, ("retention.ms", SET, "5"), ("segment.ms", SET, "6"), version=version) == 0
    assert change(send, TOPIC, topic, ("retention.ms", DELETE, None), version=version) == 0
    assert overrides(send, topic) == {"segment.ms": "6"}
    assert change(send, TOPIC, topic, ("cleanup.policy", APPEND, "compact"), version=version) == 0
    assert overrides(send, topic) == {"segment.ms": "6", "cleanup.policy": "delete,compact"}
    assert change(send, TOPIC, topic, ("cleanup.policy", SUBTRACT, "delete"), version=version) == 0
    assert overrides(send, topic)["cleanup.policy"] == "compact"
    assert change(send, TOPIC, topic, ("retention.ms", DELETE, None), ("nope", DELETE, None), version=version) == 0
    assert change(send, TOPIC, topic, version=version) == 0


def test_a_list_that_is_emptied_stays_empty(send: Send, topic: str) -> None:
    for name, first, second in (
        ("cleanup.policy", "compact", "delete"),
        ("leader.replication.throttled.replicas", "0:1", "1:2"),
    ):
        assert change(send, TOPIC, topic, (name, SET, first)) == 0
        assert change(send, TOPIC, topic, (name, SUBTRACT, first)) == 0
        assert overrides(send, topic) == {name: ""}
        assert change(send, TOPIC, topic, (name, APPEND, second)) == 0
        assert overrides(send, topic) == {name: second}
        assert change(send, TOPIC, topic, (name, DELETE, None)) == 0


def test_each_item_of_a_list_of_choices_counts_once(send: Send, topic: str) -> None:
    assert change(send, TOPIC, topic, ("cleanup.policy", SET, "compact,delete,compact")) == 0
    assert overrides(send, topic) == {"cleanup.policy": "compact,delete"}
    assert change(send, TOPIC, topic, ("cleanup.policy", SUBTRACT, "compact")) == 0
    assert overrides(send, topic) == {"cleanup.policy": "delete"}
    throttled = "leader.replication.throttled.replicas"
    assert change(send, TOPIC, topic, (throttled, SET, "0:1,0:1")) == 0
    assert overrides(send, topic)[throttled] == "0:1,0:1", "which is no list of choices"


@pytest.mark.parametrize(
    ("name", "operation", "value", "message"),
    [
        ("retention.ms", APPEND, "1", "Can't APPEND to key retention.ms because its type is not LIST."),
        ("nope", SUBTRACT, "1", "Can't SUBTRACT to key nope because its type is not LIST."),
        (
            "cleanup.policy",
            APPEND,
            "nope",
            "Invalid value nope for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        ("cleanup.policy", APPEND, "", "configuration cleanup.policy: values must not be empty"),
        ("cleanup.policy", SET, "compact,", "configuration cleanup.policy: values must not be empty"),
        ("leader.replication.throttled.replicas", SET, "*,0:1", "must be the literal '*' or a list of replicas"),
        ("follower.replication.throttled.replicas", APPEND, "x", "must be the literal '*' or a list of replicas"),
    ],
)
def test_what_a_list_does_not_take_is_said_in_the_words_of_kafka(
    send: Send, topic: str, name: str, operation: int, value: str, message: str
) -> None:
    changed = incremental_alter_configs.AlterableConfig(name=name, config_operation=operation, value=value)
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=TOPIC, resource_name=topic, configs=[changed]
    )
    (answer,) = send(incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert (answer.error_code, message in answer.error_message) == (ErrorCode.INVALID_CONFIG, True), answer


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([("nope", SET, "1")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
        ([("segment.ms", SET, "1"), ("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        ([("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "8")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_changes_that_are_refused_change_nothing(
    send: Send, topic: str, changes: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    for validate_only in (True, False):
        assert change(send, TOPIC, topic, *changes, validate_only=validate_only) == code
    assert overrides(send, topic) == {}


def test_replacements_that_are_refused_change_nothing(send: Send, topic: str) -> None:
    assert replace(send, TOPIC, topic, retention_ms="5") == 0
    assert replace(send, TOPIC, topic, nope="5") == ErrorCode.INVALID_CONFIG
    assert replace(send, TOPIC, topic, retention_ms="soon") == ErrorCode.INVALID_CONFIG
    assert replace(send, TOPIC, topic, retention_ms=None) == ErrorCode.INVALID_REQUEST
    assert replace(send, TOPIC, topic, validate_only=True, retention_ms="6") == 0
    assert overrides(send, topic) == {"retention.ms": "5"}


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", ErrorCode.INVALID_REQUEST),
        (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "m", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_that_cannot_be_changed(send: Send, kind: int, name: str, code: ErrorCode) -> None:
    assert change(send, kind, name, ("retention.ms", SET, "1")) == code
    assert replace(send, kind, name, retention_ms="1") == code


def test_levels_of_loggers(send: Send, cluster_kind: str) -> None:
    """There are no loggers with a level of their own; AlterConfigs is not for loggers on a quorum."""
    assert change(send, LOGGER, "1", ("kafka", SET, "INFO")) == ErrorCode.INVALID_CONFIG
    assert change(send, LOGGER, "1") == ErrorCode.NONE
    for name in ("2", "", "one"):
        assert change(send, LOGGER, name, ("kafka", SET, "INFO")) == ErrorCode.INVALID_REQUEST
    refusal = ErrorCode.INVALID_REQUEST if cluster_kind == QUORUM else ErrorCode.INVALID_CONFIG
    assert replace(send, LOGGER, "1", kafka="INFO") == refusal


def test_each_resource_of_a_request_has_its_outcome_in_its_place(send: Send, topic: str) -> None:
    """Whether the broker decides it or the controller."""
    second = CreatableTopic(name="second", num_partitions=1, replication_factor=1)
    assert send(CreateTopicsRequest(topics=[second]), 4).topics[0].error_code == 0
    Resource = incremental_alter_configs.AlterConfigsResource

    def config(value: str | None) -> list[incremental_alter_configs.AlterableConfig]:
        return [incremental_alter_configs.AlterableConfig(name="retention.ms", value=value)]

    asked = [
        (BROKER, "1", [], ErrorCode.NONE),
        (TOPIC, "none", config("1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (99, "x", [], ErrorCode.INVALID_REQUEST),
        (TOPIC, topic, config("1"), ErrorCode.NONE),
        (LOGGER, "1", [], ErrorCode.NONE),
        (TOPIC, "second", config(None), ErrorCode.INVALID_REQUEST),
        (BROKER, "2", [], ErrorCode.INVALID_REQUEST),
        (BROKER, "", [], ErrorCode.NONE),
    ]
    resources = [Resource(resource_type=kind, resource_name=name, configs=configs) for kind, name, configs, _ in asked]
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=resources)
    outcomes = [(each.resource_type, each.resource_name, each.error_code) for each in send(request, 1).responses]
    assert outcomes == [(kind, name, code) for kind, name, _, code in asked]
    assert overrides(send, topic) == {"retention.ms": "1"}


def test_one_resource_named_twice_is_refused_and_others_are_not(send: Send, topic: str) -> None:
    Resource = incremental_alter_configs.AlterConfigsResource
    config = incremental_alter_configs.AlterableConfig(name="retention.ms", value="1")
    resources = [
        Resource(resource_type=TOPIC, resource_name=topic, configs=[config]),
        Resource(resource_type=BROKER, resource_name="1"),
        Resource(resource_type=TOPIC, resource_name=topic),
    ]
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=resources)
    codes = [response.error_code for response in send(request, 1).responses]
    assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert overrides(send, topic) == {}


def test_settings_of_a_new_topic_are_its_overrides(send: Send) -> None:
    configs = [CreatableTopicConfig(name="cleanup.policy", value="compact")]
    topic = CreatableTopic(name="connect-like", num_partitions=1, replication_factor=1, configs=configs)
    send(CreateTopicsRequest(topics=[topic]), 4)
    assert overrides(send, "connect-like") == {"cleanup.policy": "compact"}


def test_overrides_outlive_a_restart_but_not_the_topic(
    new_broker: NewBroker, connect: Callable[[str], Send], tmp_path: Path
) -> None:
    configs = [CreatableTopicConfig(name="retention.ms", value="7")]
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=configs)]
    )
    with new_broker(data_dir=tmp_path) as broker:
        send = connect(broker.bootstrap_servers)
        send(request, 4)
        change(send, TOPIC, "t", ("segment.ms", SET, "8"))
    with new_broker(data_dir=tmp_path) as broker:
        send = connect(broker.bootstrap_servers)
        assert overrides(send, "t") == {"retention.ms": "7", "segment.ms": "8"}


def listed(send: Send, version: int, *kinds: int) -> list[tuple[int, str]]:
    response = send(ListConfigResourcesRequest(resource_types=list(kinds)), version)
    assert response.error_code == 0
    return [(r.resource_type, r.resource_name) for r in response.config_resources]


def test_resources_are_listed_by_type(send: Send, topic: str) -> None:
    assert listed(send, 0) == []
    assert (TOPIC, topic) in listed(send, 1, TOPIC)
    assert listed(send, 1, BROKER, LOGGER) == [(BROKER, "1"), (LOGGER, "1")]
    assert listed(send, 1, CLIENT_METRICS, GROUP) == []
    assert {kind for kind, _ in listed(send, 1)} == {TOPIC, BROKER, LOGGER}


def test_resources_of_no_known_type(send: Send) -> None:
    for kind in (0, 99):
        response = send(ListConfigResourcesRequest(resource_types=[TOPIC, kind]), 1)
        assert (response.error_code, response.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])


async def test_other_requests_have_a_turn_while_many_topics_are_described() -> None:
    """All settings of 9,000 topics take a second."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async def nothing() -> None:
        pass

    resources = [DescribeConfigsResource(resource_type=TOPIC, resource_name=f"t{number}") for number in range(200)]
    async with running(1) as cluster, trio.open_nursery() as nursery:
        nursery.start_soon(others)
        call = Call(cluster.services(1), ConnectionContext("PLAINTEXT", "127.0.0.1:1"), nothing)
        before = turns
        response = await describe_configs.handle(call, DescribeConfigsRequest(resources=resources))
        assert len(response.results) == 200
        assert turns - before >= 4, "a turn after every so many topics"
        nursery.cancel_scope.cancel()
