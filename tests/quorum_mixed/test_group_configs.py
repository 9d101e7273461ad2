"""Configs of groups, and the broker's setting behind them: Apache Kafka 4.3.1 and Ottla respond alike."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ottla.compat_tests.brokers import BrokerProcess, KafkaProcess, OttlaProcess
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, connect
from ottla.wire.messages import alter_configs as legacy
from ottla.wire.messages import incremental_alter_configs as incremental
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest

from ..group_coordinator.test_group_configs import DURATIONS, NO_RESETS
from ..java.warm_tools import WarmTools

pytestmark = pytest.mark.slow

BROKER, GROUP = 4, 32
DYNAMIC_BROKER_CONFIG = 2
SET, DELETE, APPEND = range(3)
SESSION, HEARTBEAT, ASSIGNMENT = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
)
BROKERS_ASSIGNMENT = "group.consumer.assignment.interval.ms"
PROPERTIES = {
    "group.consumer.session.timeout.ms": "50000",
    "group.consumer.max.session.timeout.ms": "70000",
    "group.consumer.min.heartbeat.interval.ms": "4000",
    "group.consumer.max.heartbeat.interval.ms": "65000",
    "group.consumer.min.assignment.interval.ms": "500",
    "group.consumer.max.assignment.interval.ms": "9000",
}
Change = tuple[str, int, str | None]
CHANGES: Mapping[str, tuple[str, list[Change]]] = {
    "within the bounds": ("g", [(SESSION, SET, "70000"), (HEARTBEAT, SET, "4000"), (ASSIGNMENT, SET, "9000")]),
    "above the session's bound": ("g", [(SESSION, SET, "70001")]),
    "below the session's bound": ("g", [(SESSION, SET, "44999")]),
    "above the heartbeat's bound": ("g", [(HEARTBEAT, SET, "65001")]),
    "below the heartbeat's bound": ("g", [(HEARTBEAT, SET, "3999")]),
    "above the assignment's bound": ("g", [(ASSIGNMENT, SET, "9001")]),
    "below the assignment's bound": ("g", [(ASSIGNMENT, SET, "499")]),
    "a heartbeat as long as the session": ("g", [(SESSION, SET, "60000"), (HEARTBEAT, SET, "60000")]),
    "a heartbeat longer than the broker's session": ("other", [(HEARTBEAT, SET, "50001")]),
    "no number": ("g", [(SESSION, SET, "soon")]),
    "zero": ("g", [(SESSION, SET, "0")]),
    "an unknown name": ("g", [("nothing", SET, "1")]),
    "removal of an unknown name": ("g", [("nothing", DELETE, None)]),
    "a name of brokers": ("g", [("group.consumer.session.timeout.ms", SET, "50000")]),
    "no group": ("", [(SESSION, SET, "60000")]),
    "an append": ("g", [(SESSION, APPEND, "1")]),
    "without a value": ("g", [(SESSION, SET, None)]),
    "a name twice": ("g", [(SESSION, SET, "60000"), (SESSION, SET, "60001")]),
    "no changes": ("g", []),
    "of a share group": ("s", [("share.auto.offset.reset", SET, "by_duration:P1DT2.5S")]),
    "two of a share group": ("s", [("share.isolation.level", SET, "read_committed"), ("share.session.timeout.ms", SET, "60000")]),
    "a reset that is none": ("s", [("share.auto.offset.reset", SET, "none")]),
    "a reset in capitals": ("s", [("share.auto.offset.reset", SET, "EARLIEST")]),
    "a reset in the future": ("s", [("share.auto.offset.reset", SET, "by_duration:PT-1S")]),
    "a reset by months": ("s", [("share.auto.offset.reset", SET, "by_duration:P1M")]),
    "a reset by no time": ("s", [("share.auto.offset.reset", SET, "by_duration:PT")]),
    "an isolation that is none": ("s", [("share.isolation.level", SET, "none")]),
    "neither true nor false": ("s", [("share.renew.acknowledge.enable", SET, "perhaps")]),
    "a lock that is too short": ("s", [("share.record.lock.duration.ms", SET, "14999")]),
    "too few deliveries": ("s", [("share.delivery.count.limit", SET, "1")]),
    "of a Streams group": ("t", [("streams.num.standby.replicas", SET, "2"), ("streams.assignment.interval.ms", SET, "0")]),
    "too many standby replicas": ("t", [("streams.num.standby.replicas", SET, "3")]),
    "two faults": ("g", [(HEARTBEAT, SET, "1"), ("share.session.timeout.ms", SET, "1")]),
}  # fmt: skip
OF_BROKERS: Mapping[str, tuple[str, list[Change]]] = {
    "above the bound": ("1", [(BROKERS_ASSIGNMENT, SET, "9001")]),
    "below the bound": ("", [(BROKERS_ASSIGNMENT, SET, "499")]),
    "a setting that is fixed": ("1", [("group.consumer.session.timeout.ms", SET, "60000")]),
    "of all brokers": ("", [(BROKERS_ASSIGNMENT, SET, "2000")]),
    "of this broker": ("1", [(BROKERS_ASSIGNMENT, SET, "3000")]),
}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, BrokerProcess]]:
    with contextlib.ExitStack() as stack:
        started: dict[str, BrokerProcess] = {}
        for name, kind in (("kafka", KafkaProcess), ("ottla", OttlaProcess)):
            broker = kind(tmp_path_factory.mktemp(name), properties=PROPERTIES)
            stack.callback(broker.close)
            broker.start()
            started[name] = broker
        yield started


def of_both(brokers: Mapping[str, BrokerProcess], ask: Callable[[Connection], Any]) -> dict[str, Any]:
    """What each says."""
    told = {}
    for name, broker in brokers.items():
        with connect(broker.bootstrap) as connection:
            told[name] = ask(connection)
    return told


def changed(connection: Connection, kind: int, name: str, changes: list[Change], **more: Any) -> Any:
    configs = [incremental.AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in changes]
    resource = incremental.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource], **more)
    (response,) = connection.call(request, 1).responses
    return response.error_code, response.error_message or ""


def described(connection: Connection, kind: int, name: str, *names: str) -> Any:
    """Each config with its value, where that comes from, and the other values behind it; or the refusal."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=list(names) or None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (result,) = connection.call(request, 4).results
    if result.error_code:
        return result.error_code, result.error_message
    return {
        each.name: (
            each.value,
            each.config_source,
            each.config_type,
            each.read_only,
            each.is_sensitive,
            [(s.name, s.value, s.source) for s in each.synonyms],
        )
        for each in result.configs
    }


def listed(connection: Connection) -> Any:
    response = connection.call(ListConfigResourcesRequest(resource_types=[GROUP]), 1)
    return response.error_code, sorted(each.resource_name for each in response.config_resources)


def agree(brokers: Mapping[str, BrokerProcess], ask: Callable[[Connection], Any]) -> Any:
    """What both say in the end: a broker learns of a change a moment after it was made."""
    told: dict[str, Any] = {}

    def is_so() -> bool:
        told.update(of_both(brokers, ask))
        return told["ottla"] == told["kafka"]

    with contextlib.suppress(AssertionError):
        eventually(is_so, 20)
    assert told["ottla"] == told["kafka"]
    return told["ottla"]


def test_changes(brokers: Mapping[str, BrokerProcess]) -> None:
    def ask(connection: Connection) -> Any:
        return {about: changed(connection, GROUP, *of) for about, of in CHANGES.items()}

    told = of_both(brokers, ask)
    assert told["ottla"] == told["kafka"]
    assert agree(brokers, listed) == (0, ["g", "s", "t"])
    for name in ("g", "s", "t", "none", ""):
        agree(brokers, lambda connection, name=name: described(connection, GROUP, name))


def test_resets_of_share_groups(brokers: Mapping[str, BrokerProcess]) -> None:
    resets = [*(f"by_duration:{duration}" for duration in DURATIONS), *NO_RESETS]

    def ask(connection: Connection) -> Any:
        return {value: changed(connection, GROUP, "s", [("share.auto.offset.reset", SET, value)]) for value in resets}

    told = of_both(brokers, ask)
    assert told["ottla"] == told["kafka"]


def test_replacements(brokers: Mapping[str, BrokerProcess]) -> None:
    def ask(connection: Connection) -> Any:
        told = []
        for configs, is_check in (
            ({SESSION: "60000", ASSIGNMENT: "600"}, False),
            ({SESSION: "1"}, False),
            ({"nothing": "1"}, False),
            ({HEARTBEAT: None}, False),
            ({HEARTBEAT: "7000"}, True),
            ({ASSIGNMENT: "700"}, False),
        ):
            given = [legacy.AlterableConfig(name=name, value=value) for name, value in configs.items()]
            resource = legacy.AlterConfigsResource(resource_type=GROUP, resource_name="r", configs=given)
            request = legacy.AlterConfigsRequest(resources=[resource], validate_only=is_check)
            (response,) = connection.call(request, 2).responses
            told.append((response.error_code, response.error_message or ""))
        return told

    told = of_both(brokers, ask)
    assert told["ottla"] == told["kafka"]
    agree(brokers, lambda connection: described(connection, GROUP, "r"))


def test_the_setting_of_brokers(brokers: Mapping[str, BrokerProcess]) -> None:
    """Messages differ. So does the value of a group without its own: Kafka shows its default there (KAFKA-20337)."""

    def ask(connection: Connection) -> Any:
        return {about: changed(connection, BROKER, *of)[0] for about, of in OF_BROKERS.items()}

    def without_value(connection: Connection) -> Any:
        return described(connection, GROUP, "none", ASSIGNMENT)[ASSIGNMENT][1:]

    told = of_both(brokers, ask)
    assert told["ottla"] == told["kafka"]
    agree(brokers, lambda connection: described(connection, BROKER, "1", BROKERS_ASSIGNMENT))
    assert agree(brokers, without_value)[0] == DYNAMIC_BROKER_CONFIG
    ours = of_both({"ottla": brokers["ottla"]}, lambda connection: described(connection, GROUP, "none", ASSIGNMENT))
    assert ours["ottla"][ASSIGNMENT][0] == "3000"
    for name in ("", "1"):
        of_both(
            brokers,
            lambda connection, name=name: changed(connection, BROKER, name, [(BROKERS_ASSIGNMENT, DELETE, None)]),
        )
    agree(brokers, lambda connection: described(connection, GROUP, "none", ASSIGNMENT))


def test_kafka_configs(brokers: Mapping[str, BrokerProcess], tmp_path: Path) -> None:
    tools = WarmTools("", tmp_path)
    whose = ("--entity-type", "groups", "--entity-name", "by-a-tool")
    try:
        for call in (
            ("--alter", *whose, "--add-config", f"{SESSION}=60000,{HEARTBEAT}=6000"),
            ("--describe", *whose),
            ("--describe", *whose, "--all"),
            ("--describe", "--entity-type", "groups"),
            ("--alter", *whose, "--add-config", f"{SESSION}=1000000"),
            ("--alter", *whose, "--delete-config", SESSION),
            ("--describe", *whose),
            ("--alter", *whose, "--delete-config", HEARTBEAT),
            ("--describe", "--entity-type", "groups"),
        ):
            printed: dict[str, Any] = {}

            def are_alike(call: tuple[str, ...] = call, printed: dict[str, Any] = printed) -> bool:
                for name, broker in brokers.items():
                    outcome = tools.run("configs", "--bootstrap-server", broker.bootstrap, *call)
                    lines = outcome.printed.replace(broker.bootstrap, "<broker>").splitlines()
                    printed[name] = outcome.code, sorted(lines)  # groups come in no order
                return printed["ottla"] == printed["kafka"]

            with contextlib.suppress(AssertionError):
                eventually(are_alike, 20)
            assert printed["ottla"] == printed["kafka"], call
    finally:
        tools.close()
