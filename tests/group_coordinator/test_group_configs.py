"""Configs of groups, and the settings of brokers behind them: which there may be, and what is in force."""

from __future__ import annotations

import logging
import re
from functools import partial

import pytest

from ottla.base.config import Config
from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.settings import SettingError
from ottla.broker.config_file import load_config
from ottla.controller.configs.broker_configs import BrokerConfigs, check_broker_overrides
from ottla.group_coordinator.consumer_group_settings import ConsumerGroupSettings
from ottla.group_coordinator.group_configs import (
    check_group_configs,
    group_times,
    times_of_group,
    within_bounds,
)
from ottla.group_coordinator.group_times import GroupTimes
from ottla.group_coordinator.share_group_settings import ShareGroupSettings
from ottla.metadata.delta import ClusterDelta
from ottla.replication.metadata_cache import MetadataCache
from ottla.security.entities import BROKERS, DEFAULT, GROUPS, Entity

SESSION, HEARTBEAT, ASSIGNMENT = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
)
DURATIONS = ("PT1H", "P2D", "P1DT2H3M4.5S", "pt0s", "-PT-1S", "+PT1,5S", "PT1.S", "P1DT-1H", f"PT{(1 << 63) - 1025}S")
NO_RESETS = (
    *(
        "by_duration",
        "by_duration:",
        "by_duration:P",
        "by_duration:PT",
        "by_duration:P1DT",
        "by_duration:P1W",
        "Latest",
    ),
    *("by_duration:PT-1S", "by_duration:-PT1S", "by_duration:PT.5S", "by_duration:PT1.5H", "by_duration:PT-0.5S"),
    *(f"by_duration:PT{1 << 63}S", "BY_DURATION:PT1S", "by_duration:P1D2H", "none", ""),
)
DEFAULTS = GroupTimes(45_000, 5_000, 1_000)


def settings(**properties: int) -> ConsumerGroupSettings:
    """By the properties' names after ``group.consumer.``."""
    return ConsumerGroupSettings.from_properties(
        {f"group.consumer.{name.replace('_', '.')}": str(value) for name, value in properties.items()}
    )


def metadata_with(entity: Entity, configs: dict[str, str]) -> MetadataCache:
    metadata = MetadataCache()
    metadata.publish(ClusterDelta(configs={entity: configs}))
    return metadata


@pytest.mark.parametrize(
    ("overrides", "times"),
    [
        ({}, DEFAULTS),
        ({SESSION: "50000"}, DEFAULTS._replace(session_timeout_ms=50_000)),
        ({HEARTBEAT: "6000", ASSIGNMENT: "0"}, DEFAULTS._replace(heartbeat_interval_ms=6_000, assignment_interval_ms=0)),
        pytest.param({SESSION: "1", HEARTBEAT: "1"}, DEFAULTS, id="below the bounds"),
        pytest.param(
            {SESSION: "999999", HEARTBEAT: "999999", ASSIGNMENT: "999999"},
            GroupTimes(60_000, 15_000, 15_000),
            id="above the bounds",
        ),
        pytest.param({SESSION: "soon", HEARTBEAT: "6000"}, DEFAULTS._replace(heartbeat_interval_ms=6_000), id="no number"),
        pytest.param({"share.session.timeout.ms": "50000"}, DEFAULTS, id="of another kind of group"),
    ],
)  # fmt: skip
def test_the_times_of_a_group(overrides: dict[str, str], times: GroupTimes) -> None:
    assert times_of_group(ConsumerGroupSettings(), overrides) == times


def test_bounds_that_a_broker_has_since_a_value_was_set() -> None:
    narrow = settings(max_session_timeout_ms=46_000, min_assignment_interval_ms=500)
    times = times_of_group(narrow, {SESSION: "60000", ASSIGNMENT: "100"})
    assert times == DEFAULTS._replace(session_timeout_ms=46_000, assignment_interval_ms=500)


def test_the_times_of_a_share_group() -> None:
    config = Config({"group.share.heartbeat.interval.ms": "6000"})
    metadata = metadata_with(Entity(GROUPS, "g"), {"share.session.timeout.ms": "50000", SESSION: "46000"})
    times = group_times(config, metadata, ShareGroupSettings)
    assert (times("g"), times("other")) == (GroupTimes(50_000, 6_000, 1_000), GroupTimes(45_000, 6_000, 1_000))


def test_times_follow_the_metadata_and_the_broker() -> None:
    config = Config({"group.consumer.session.timeout.ms": "50000"})
    metadata = metadata_with(Entity(GROUPS, "g"), {HEARTBEAT: "7000"})
    times = group_times(config, metadata, ConsumerGroupSettings)
    of_all = DEFAULTS._replace(session_timeout_ms=50_000)
    assert (times("g"), times("other")) == (of_all._replace(heartbeat_interval_ms=7_000), of_all)
    config.change_dynamic({"group.consumer.assignment.interval.ms": "3000"}, {})
    assert times("other") == of_all._replace(assignment_interval_ms=3_000)
    metadata.publish(ClusterDelta(configs={Entity(GROUPS, "g"): {}}))
    assert times("g") == times("other")


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"max_session_timeout_ms": 44_999}, "max.session.timeout.ms: must be greater than or equal to group.consumer.min"),
        ({"session_timeout_ms": 44_999}, "consumer.session.timeout.ms: must be greater than or equal to group.consumer.min"),
        ({"session_timeout_ms": 60_001}, "consumer.session.timeout.ms: must be less than or equal to group.consumer.max"),
        ({"min_heartbeat_interval_ms": 15_001}, "max.heartbeat.interval.ms: must be greater than or equal"),
        ({"heartbeat_interval_ms": 4_999}, "group.consumer.min.heartbeat.interval.ms, which is 5000"),
        ({"heartbeat_interval_ms": 15_001}, "group.consumer.max.heartbeat.interval.ms, which is 15000"),
        ({"heartbeat_interval_ms": 45_000, "max_heartbeat_interval_ms": 45_000}, "must be less than group.consumer.session"),
        ({"min_assignment_interval_ms": 15_001}, "max.assignment.interval.ms: must be greater than or equal"),
        ({"assignment_interval_ms": 1, "min_assignment_interval_ms": 2}, "group.consumer.min.assignment.interval.ms"),
        ({"assignment_interval_ms": 15_001}, "group.consumer.max.assignment.interval.ms, which is 15000"),
    ],
)  # fmt: skip
def test_settings_of_a_broker_that_do_not_fit_each_other(properties: dict[str, int], why: str) -> None:
    with pytest.raises(SettingError, match=why.replace(".", r"\.")):
        settings(**properties)


def test_a_broker_does_not_start_with_them() -> None:
    with pytest.raises(SettingError, match=r"60000 for configuration group\.consumer\.heartbeat\.interval\.ms"):
        load_config({"group.consumer.heartbeat.interval.ms": "60000"})


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"max.share.sessions": 199}, "max.size: must be less than or equal to group.share.max.share.sessions, which is 199"),
        ({"max.size": 1000, "max.share.sessions": 999}, "which is 999"),
        ({"delivery.count.limit": 10, "max.delivery.count.limit": 9}, "limit: must be less than or equal to group.share.max.d"),
        ({"delivery.count.limit": 2, "min.delivery.count.limit": 3}, "limit: must be greater than or equal to group.share.min"),
        ({"partition.max.record.locks": 4_001}, "group.share.max.partition.max.record.locks, which is 4000"),
        ({"partition.max.record.locks": 100, "min.partition.max.record.locks": 101}, "record.locks, which is 101"),
        ({"record.lock.duration.ms": 14_999}, "group.share.min.record.lock.duration.ms, which is 15000"),
        ({"record.lock.duration.ms": 60_001}, "group.share.max.record.lock.duration.ms, which is 60000"),
        ({"session.timeout.ms": 44_999}, "group.share.min.session.timeout.ms, which is 45000"),
    ],
)  # fmt: skip
def test_a_broker_does_not_start_with_settings_of_share_groups_that_do_not_fit(
    properties: dict[str, int], why: str
) -> None:
    with pytest.raises(SettingError, match=re.escape(why)):
        load_config({f"group.share.{name}": str(value) for name, value in properties.items()})


def test_settings_of_share_groups_may_be_at_their_bounds() -> None:
    load_config({"group.share.max.share.sessions": "200", "group.share.record.lock.duration.ms": "60000"})
    load_config({"group.share.max.size": "1", "group.share.max.share.sessions": "1"})


def test_the_assignment_interval_of_a_running_broker() -> None:
    """A change beyond the bounds is refused; where one is stored, the nearest value is in force."""
    name = "group.consumer.assignment.interval.ms"
    config = load_config({"group.consumer.max.assignment.interval.ms": "9000"})
    with pytest.raises(KafkaError, match="which is 9000") as refused:
        check_broker_overrides(config, {name: "9001"}, per_broker=True)
    assert refused.value.code == ErrorCode.INVALID_REQUEST
    assert check_broker_overrides(config, {name: "9000"}, per_broker=False) == {name: "9000"}

    metadata = metadata_with(Entity(BROKERS, DEFAULT), {name: "9001"})
    BrokerConfigs(config, metadata, 1, partial(within_bounds, config)).follow()
    assert config.settings(ConsumerGroupSettings).assignment_interval_ms == 9_000
    metadata.publish(ClusterDelta(configs={Entity(BROKERS, "1"): {name: "2000"}}))
    assert config.settings(ConsumerGroupSettings).assignment_interval_ms == 2_000


def test_a_stored_value_beyond_a_bound_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    name, config = "group.consumer.assignment.interval.ms", Config({"group.consumer.min.assignment.interval.ms": "500"})
    with caplog.at_level(logging.WARNING):
        assert within_bounds(config, {name: "499", "other": "1"}) == {name: "500", "other": "1"}
    assert f"{name} is set to 499" in caplog.text
    assert within_bounds(config, {name: "many"}) == {name: "many"}


@pytest.mark.parametrize("duration", DURATIONS)
def test_durations_of_a_reset(duration: str) -> None:
    check_group_configs(Config(), {"share.auto.offset.reset": f"by_duration:{duration}"})


@pytest.mark.parametrize("value", NO_RESETS)
def test_resets_that_are_none(value: str) -> None:
    with pytest.raises(KafkaError, match="by_duration:<PnDTnHnMn") as refused:
        check_group_configs(Config(), {"share.auto.offset.reset": value})
    assert refused.value.code == ErrorCode.INVALID_CONFIG


def test_a_group_is_checked_by_the_settings_of_the_node() -> None:
    wide = Config(
        {
            "group.consumer.max.session.timeout.ms": "70000",
            "group.consumer.session.timeout.ms": "70000",
            "group.consumer.max.heartbeat.interval.ms": "69999",
            "group.share.min.session.timeout.ms": "6000",
        }
    )
    check_group_configs(wide, {"share.session.timeout.ms": "6000"})
    with pytest.raises(KafkaError, match=r"group\.share\.min\.session\.timeout\.ms"):
        check_group_configs(wide, {"share.session.timeout.ms": "5999"})
    check_group_configs(wide, {HEARTBEAT: "69999"})
    check_group_configs(wide, {SESSION: "69999"})
    for configs in ({SESSION: "69999", HEARTBEAT: "69999"}, {SESSION: "70001"}, {HEARTBEAT: "70000"}):
        with pytest.raises(KafkaError) as refused:
            check_group_configs(wide, configs)
        assert refused.value.code == ErrorCode.INVALID_CONFIG
    with pytest.raises(KafkaError, match=r"max\.session\.timeout\.ms"):
        check_group_configs(Config(), {SESSION: "69999"})
