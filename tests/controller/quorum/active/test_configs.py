"""Changes of configs that the captured files don't have. Facts from Kafka's ConfigurationControlManagerTest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from ottla.base.config import Config
from ottla.base.errors import ErrorCode, KafkaError
from ottla.controller.configs.topic_configs import ConfigOpType
from ottla.controller.configs.unused_configs import UNUSED
from ottla.controller.quorum.active.configs import (
    ConfigClient,
    ConfigRules,
    config_records,
    incremental_alter_configs,
    replace_configs,
)
from ottla.controller.quorum.active.result import MAX_RECORDS
from ottla.controller.quorum.replay import BROKER_CONFIG, CLIENT_METRICS_CONFIG, GROUP_CONFIG, TOPIC_CONFIG
from ottla.group_coordinator.group_configs import check_group_configs
from ottla.log.settings import LogSettings
from ottla.metadata.image import ClusterImage
from ottla.wire.messages import alter_configs as legacy
from ottla.wire.messages import incremental_alter_configs as incremental
from ottla.wire.messages.setting_records import ConfigRecord
from ottla.wire.messages.topic_records import ClearElrRecord
from ottla.wire.metadata_records import VersionedRecord

from .helpers.cluster_images import after, cluster, controller, replayed

ELR = {"eligible.leader.replicas.version": 1}
RULES = ConfigRules(9, [9], LogSettings(), UNUSED, partial(check_group_configs, Config()))
ANYBODY = ConfigClient(lambda kind, name: None, is_forwarded=False)
THROTTLED = "leader.replication.throttled.replicas"
Changes = Sequence[tuple[str, int, str | None]]


def altered(
    image: ClusterImage, name: str, changes: Changes, kind: int = TOPIC_CONFIG, client: ConfigClient = ANYBODY
) -> tuple[ErrorCode, list[tuple[str, str | None]], ClusterImage]:
    """The error, what is written, and the image after it."""
    configs = [incremental.AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in changes]
    resource = incremental.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource])
    result = incremental_alter_configs(image, request, RULES, client)
    (response,) = result.response.responses
    assert (response.resource_type, response.resource_name) == (kind, name)
    return ErrorCode(response.error_code), _shown(result.records), replayed(image, result)


def _shown(records: Sequence[VersionedRecord]) -> list[tuple[str, str | None]]:
    shown: list[tuple[str, str | None]] = []
    for record, version in records:
        assert version == 0
        if isinstance(record, ClearElrRecord):
            shown.append(("clear", record.topic_name))
        else:
            assert isinstance(record, ConfigRecord)
            shown.append((record.name, record.value))
    return shown


def test_a_list_grows_and_shrinks() -> None:
    image = cluster(topics=["t"])
    for change, value, written in (
        (ConfigOpType.APPEND, "0:1,0:2,0:3", "0:1,0:2,0:3"),
        (ConfigOpType.APPEND, "0:1,0:2", None),
        (ConfigOpType.SUBTRACT, "0:1,0:2", "0:3"),
        (ConfigOpType.SUBTRACT, "9:9", None),
        (ConfigOpType.SUBTRACT, "0:3", ""),
        (ConfigOpType.DELETE, "ignored", None),
    ):
        error, records, image = altered(image, "t", [(THROTTLED, change, value)])
        assert error is ErrorCode.NONE
        assert records == ([(THROTTLED, written)] if written is not None or change is ConfigOpType.DELETE else [])


@pytest.mark.parametrize(
    ("kind", "name", "changes", "error"),
    [
        pytest.param(TOPIC_CONFIG, "t", [("retention.ms", 9, "1")], "INVALID_REQUEST", id="unknown operation"),
        pytest.param(TOPIC_CONFIG, "t", [(THROTTLED, 2, None)], "INVALID_REQUEST", id="append without a value"),
        pytest.param(TOPIC_CONFIG, "t", [(THROTTLED, 3, None)], "INVALID_REQUEST", id="subtract without a value"),
        pytest.param(TOPIC_CONFIG, "t", [("retention.ms", 0, "1"), ("x", 0, "1")], "INVALID_CONFIG", id="all or none"),
        pytest.param(BROKER_CONFIG, "99999999999", [("x", 0, "1")], "INVALID_REQUEST", id="an id of eleven digits"),
        pytest.param(BROKER_CONFIG, "3", [("x", 0, "1")], "BROKER_ID_NOT_REGISTERED", id="an unknown broker"),
        pytest.param(BROKER_CONFIG, "1", [("x", 0, "1")], "NONE", id="a broker"),
        pytest.param(BROKER_CONFIG, "8", [("x", 0, "1")], "NONE", id="a controller"),
        pytest.param(BROKER_CONFIG, "9", [("x", 0, "1")], "NONE", id="a voter that has not registered"),
        pytest.param(8, "9", [("root", 0, "INFO")], "INVALID_CONFIG", id="a logger of this node"),
        pytest.param(8, "x", [("root", 0, "INFO")], "INVALID_REQUEST", id="a logger of no node"),
        pytest.param(0, "t", [], "UNSUPPORTED_VERSION", id="unknown type"),
        pytest.param(GROUP_CONFIG, "g", [("share.auto.offset.reset", 0, "by_duration:PT1H")], "NONE", id="group"),
        pytest.param(GROUP_CONFIG, "g", [("share.auto.offset.reset", 0, "then")], "INVALID_CONFIG", id="group's reset"),
        pytest.param(GROUP_CONFIG, "g", [("streams.num.standby.replicas", 0, "3")], "INVALID_CONFIG", id="group's bound"),
        pytest.param(CLIENT_METRICS_CONFIG, "m", [("match", 0, "client_id=")], "INVALID_CONFIG", id="an empty match"),
    ],
)  # fmt: skip
def test_what_is_refused(kind: int, name: str, changes: Changes, error: str) -> None:
    image = after(cluster(brokers=[1], topics=["t"]), [controller(8)])
    found, records, _ = altered(image, name, changes, kind)
    assert found.name == error
    assert bool(records) == (error == "NONE")


def test_a_client_without_the_right_changes_nothing() -> None:
    def check(kind: int, name: str) -> None:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    error, records, _ = altered(
        cluster(topics=["t"]), "t", [("retention.ms", 0, "1")], client=ConfigClient(check, False)
    )
    assert (error, records) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])


@pytest.mark.parametrize(
    ("levels", "kind", "name", "value", "error", "records"),
    [
        pytest.param(ELR, TOPIC_CONFIG, "t", "2", "NONE", [("clear", "t")], id="topic"),
        pytest.param({}, TOPIC_CONFIG, "t", "2", "NONE", [], id="topic, off"),
        pytest.param(ELR, BROKER_CONFIG, "", "2", "NONE", [("clear", "")], id="all brokers"),
        pytest.param({}, BROKER_CONFIG, "", "2", "NONE", [], id="all brokers, off"),
        pytest.param(ELR, BROKER_CONFIG, "1", "2", "INVALID_CONFIG", None, id="one broker"),
        pytest.param({}, BROKER_CONFIG, "1", "2", "NONE", [], id="one broker, off"),
        pytest.param(ELR, BROKER_CONFIG, "", None, "INVALID_CONFIG", None, id="removal for all"),
        pytest.param({}, BROKER_CONFIG, "", None, "NONE", [], id="removal for all, off"),
    ],
)
def test_the_least_number_of_replicas_in_sync_clears_eligible_leaders(
    levels: Mapping[str, int], kind: int, name: str, value: str | None, error: str, records: list[Any] | None
) -> None:
    image = cluster(levels, brokers=[1], topics=["t"])
    found, written, _ = altered(image, name, [("min.insync.replicas", ConfigOpType.SET, value)], kind)
    assert found.name == error
    assert written == ([] if records is None else [("min.insync.replicas", value), *records])


def test_the_records_of_a_new_topic_are_checked_and_its_topic_need_not_exist() -> None:
    configs = {"min.insync.replicas": "2", "retention.ms": "1"}
    records = config_records(RULES, cluster(ELR), "new", configs)
    assert _shown(records) == [*configs.items(), ("clear", "new")]
    with pytest.raises(KafkaError) as raised:
        config_records(RULES, cluster(ELR), "new", {"retention.ms": "soon"})
    assert raised.value.code is ErrorCode.INVALID_CONFIG


def test_what_is_not_named_is_removed_from_a_topic() -> None:
    image = cluster(topics=["t"])

    def replace(image: ClusterImage, **configs: str) -> tuple[list[tuple[str, str | None]], ClusterImage]:
        given = [legacy.AlterableConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()]
        resource = legacy.AlterConfigsResource(resource_type=TOPIC_CONFIG, resource_name="t", configs=given)
        result = replace_configs(image, legacy.AlterConfigsRequest(resources=[resource]), RULES, ANYBODY)
        assert [each.error_code for each in result.response.responses] == [0]
        return _shown(result.records), replayed(image, result)

    records, image = replace(image, retention_ms="456", segment_ms="901")
    assert records == [("retention.ms", "456"), ("segment.ms", "901")]
    records, image = replace(image, segment_ms="901")
    assert records == [("retention.ms", None)]
    assert dict(image.topic_config("t")) == {"segment.ms": "901"}


def test_more_records_than_an_operation_may_have_are_refused() -> None:
    changes = [(f"plugin.{number}", ConfigOpType.SET, "1") for number in range(MAX_RECORDS + 1)]
    with pytest.raises(KafkaError) as raised:
        altered(cluster(brokers=[1]), "1", changes, BROKER_CONFIG)
    assert raised.value.code is ErrorCode.POLICY_VIOLATION
