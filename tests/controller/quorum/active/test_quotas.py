"""Changes of quotas that the captured files don't have. Facts from Kafka's ClientQuotaControlManagerTest."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from ottla.base.errors import ErrorCode
from ottla.controller.quorum.active.quotas import alter_client_quotas
from ottla.metadata.image import ClusterImage
from ottla.security.quota_entities import NamedEntity, stored_entity
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from ottla.wire.messages.setting_records import ClientQuotaRecord
from ottla.wire.messages.setting_records import EntityData as RecordEntity

from .helpers.cluster_images import cluster, replayed

USER: NamedEntity = {"user": "user-1"}


def altered(
    image: ClusterImage, entity: NamedEntity, limits: Mapping[str, float | None]
) -> tuple[ErrorCode, ClusterImage]:
    """The error, and the image after it."""
    parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    ops = [OpData(key=key, value=value or 0.0, remove=value is None) for key, value in limits.items()]
    request = AlterClientQuotasRequest(entries=[EntryData(entity=parts, ops=ops)])
    result = alter_client_quotas(image, request, lambda text: text == "1.2.3.4")
    (entry,) = result.response.entries
    assert {part.entity_type: part.entity_name for part in entry.entity} == entity
    assert not (entry.error_code and result.records)
    return ErrorCode(entry.error_code), replayed(image, result)


def test_quotas_are_set_and_removed_one_by_one() -> None:
    image = cluster()
    expected: dict[str, float] = {}
    for changes in (
        {"producer_byte_rate": 10_000.0},
        {"producer_byte_rate": 10_001.0, "consumer_byte_rate": 20_000.0},
        {"producer_byte_rate": None},
        {"request_percentage": None},
        {"consumer_byte_rate": None},
        {"consumer_byte_rate": None},
        {"request_percentage": 99.0, "controller_mutation_rate": None, "producer_byte_rate": 10_002.0},
    ):
        error, image = altered(image, USER, changes)
        assert error is ErrorCode.NONE
        for key, value in changes.items():
            if value is None:
                expected.pop(key, None)
            else:
                expected[key] = value
        assert dict(image.quotas.get(stored_entity(USER), {})) == expected


@pytest.mark.parametrize(
    "entity",
    [
        {"user": "u", "client-id": "c"},
        {"user": None, "client-id": "c"},
        {"user": "u", "client-id": None},
        {"user": None, "client-id": None},
        {"user": None},
        {"client-id": "c"},
        {"client-id": None},
    ],
    ids=str,
)
def test_an_entity_is_in_the_record_as_it_is_named(entity: NamedEntity) -> None:
    parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    entry = EntryData(entity=parts, ops=[OpData(key="request_percentage", value=50.5)])
    result = alter_client_quotas(cluster(), AlterClientQuotasRequest(entries=[entry]), bool)
    ((record, version),) = result.records
    assert version == 0
    expected = [RecordEntity(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    assert record == ClientQuotaRecord(entity=expected, key="request_percentage", value=50.5, remove=False)


@pytest.mark.parametrize(
    ("entity", "limits"),
    [
        ({"foo": "bar"}, {"producer_byte_rate": 1.0}),
        ({"user": "u", "foo": "bar"}, {"producer_byte_rate": 1.0}),
        ({"client-id": "c", "ip": "1.2.3.4"}, {"producer_byte_rate": 1.0}),
        ({}, {"producer_byte_rate": 1.0}),
        ({"ip": "example.invalid"}, {"connection_creation_rate": 1.0}),
        (USER, {"not.a.quota.key": 0.0, "request_percentage": 99.9}),
        (USER, {"request_percentage": 99.9, "not.a.quota.key": 0.0}),
        (USER, {"request_percentage": math.nan}),
        (USER, {"request_percentage": math.inf}),
        (USER, {"producer_byte_rate": math.inf}),
        (USER, {"producer_byte_rate": math.nan}),
    ],
    ids=str,
)
def test_nothing_is_set_where_a_part_is_invalid(entity: NamedEntity, limits: Mapping[str, float | None]) -> None:
    error, image = altered(cluster(), entity, limits)
    assert error is ErrorCode.INVALID_REQUEST
    assert not image.quotas
