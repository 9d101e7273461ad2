"""DescribeClientQuotas and AlterClientQuotas: what can be set on what, and which filters find it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from ottla.base.errors import ErrorCode
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from ottla.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest

from ..helpers.zookeeper_broker import on_both_kinds
from .conftest import Send

__all__ = ["on_both_kinds"]

Entity = dict[str, str | None]
Quotas = dict[tuple[tuple[str, str | None], ...], dict[str, float]]

EXACT, DEFAULT, ANY = 0, 1, 2
SET: list[tuple[Entity, dict[str, float]]] = [
    ({"user": "alice"}, {"producer_byte_rate": 1000}),
    ({"user": "a b/é*"}, {"request_percentage": 12.5, "controller_mutation_rate": 0.5}),
    ({"user": None}, {"consumer_byte_rate": 2**40}),
    ({"user": "alice", "client-id": "app"}, {"producer_byte_rate": 1}),
    ({"user": "alice", "client-id": None}, {"producer_byte_rate": 2}),
    ({"user": None, "client-id": "app"}, {"producer_byte_rate": 3}),
    ({"user": None, "client-id": None}, {"producer_byte_rate": 4}),
    ({"client-id": "app"}, {"producer_byte_rate": 5}),
    ({"client-id": None}, {"producer_byte_rate": 6}),
    ({"ip": "127.0.0.7"}, {"connection_creation_rate": 7}),
    ({"ip": None}, {"connection_creation_rate": 1_000_000}),
]


def alter(send: Send, entity: Entity, quotas: dict[str, float | None], *, validate_only: bool = False) -> int:
    """The error code of setting quotas, or with None removing them."""
    named = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    ops = [OpData(key=key, value=value or 0.0, remove=value is None) for key, value in quotas.items()]
    request = AlterClientQuotasRequest(entries=[EntryData(entity=named, ops=ops)], validate_only=validate_only)
    (answer,) = send(request, 1).entries
    assert {part.entity_type: part.entity_name for part in answer.entity} == entity
    code: int = answer.error_code
    return code


def describe(send: Send, *components: tuple[str, int, str | None], strict: bool = False) -> Quotas:
    asked = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
    answer = send(DescribeClientQuotasRequest(components=asked, strict=strict), 1)
    assert answer.error_code == 0, answer
    return {
        key({part.entity_type: part.entity_name for part in entry.entity}): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries
    }


def key(entity: Entity) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted(entity.items()))


@pytest.fixture
def everything(send: Send) -> Iterator[None]:
    for entity, quotas in SET:
        assert alter(send, entity, dict(quotas)) == 0
    yield
    for entity, quotas in SET:
        assert alter(send, entity, dict.fromkeys(quotas)) == 0
    assert describe(send) == {}


@pytest.mark.parametrize(
    ("components", "strict", "numbers"),
    [
        ([], False, range(11)),
        ([], True, []),
        ([("user", EXACT, "alice")], False, [0, 3, 4]),
        ([("user", EXACT, "alice")], True, [0]),
        ([("user", EXACT, "a b/é*")], False, [1]),
        ([("user", EXACT, "nobody")], False, []),
        ([("user", DEFAULT, None)], False, [2, 5, 6]),
        ([("user", DEFAULT, None)], True, [2]),
        ([("user", ANY, None)], False, range(7)),
        ([("user", ANY, None)], True, range(3)),
        ([("client-id", EXACT, "app")], False, [3, 5, 7]),
        ([("client-id", EXACT, "app")], True, [7]),
        ([("client-id", ANY, None)], True, [7, 8]),
        ([("user", EXACT, "alice"), ("client-id", EXACT, "app")], True, [3]),
        ([("user", EXACT, "alice"), ("client-id", DEFAULT, None)], False, [4]),
        ([("user", ANY, None), ("client-id", ANY, None)], True, range(3, 7)),
        ([("ip", EXACT, "127.0.0.7")], True, [9]),
        ([("ip", DEFAULT, None)], False, [10]),
        ([("ip", ANY, None)], False, [9, 10]),
    ],
)
@pytest.mark.usefixtures("everything")
def test_filters_find_what_they_say(
    send: Send, components: list[tuple[str, int, str | None]], strict: bool, numbers: list[int]
) -> None:
    expected = {key(SET[number][0]): SET[number][1] for number in numbers}
    assert describe(send, *components, strict=strict) == expected


def test_quotas_are_changed_one_by_one(send: Send) -> None:
    user: Entity = {"user": "bob"}
    assert alter(send, user, {"producer_byte_rate": 10, "consumer_byte_rate": 20}) == 0
    assert alter(send, user, {"producer_byte_rate": 30, "request_percentage": None}) == 0
    assert describe(send) == {key(user): {"producer_byte_rate": 30, "consumer_byte_rate": 20}}
    assert alter(send, user, {"producer_byte_rate": None}, validate_only=True) == 0
    assert alter(send, user, {"consumer_byte_rate": None, "no_such_key": None}) == 0
    assert describe(send) == {key(user): {"producer_byte_rate": 30}}
    assert alter(send, user, {"producer_byte_rate": None}) == 0
    assert describe(send) == {}


@pytest.mark.parametrize(
    ("entity", "quotas"),
    [
        ({}, {"producer_byte_rate": 1}),
        ({"user": ""}, {"producer_byte_rate": 1}),
        ({"group": "g"}, {"producer_byte_rate": 1}),
        ({"ip": "127.0.0.1", "user": "alice"}, {"connection_creation_rate": 1}),
        ({"ip": "no..host"}, {"connection_creation_rate": 1}),  # which needs no look at a name server
        ({"ip": "127.0.0.1"}, {"producer_byte_rate": 1}),
        ({"ip": "127.0.0.1"}, {"connection_creation_rate": -1}),
        ({"ip": "127.0.0.1"}, {"connection_creation_rate": 2**31}),
        ({"ip": "127.0.0.1"}, {"connection_creation_rate": 1.5}),
        ({"user": "alice"}, {"connection_creation_rate": 1}),
        ({"user": "alice"}, {"producer_byte_rate": 1.5}),
        ({"user": "alice"}, {"producer_byte_rate": 2.0**63}),
        ({"user": "alice"}, {"producer_byte_rate": math.nan}),
        ({"user": "alice"}, {"request_percentage": math.inf}),
        ({"user": "alice"}, {"SCRAM-SHA-256": 1}),
        ({"client-id": "app"}, {"no_such_key": 1}),
    ],
)
def test_what_cannot_be_set_is_an_invalid_request(send: Send, entity: Entity, quotas: dict[str, float | None]) -> None:
    assert alter(send, entity, quotas) == ErrorCode.INVALID_REQUEST
    assert describe(send) == {}


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("user", ANY, None), ("user", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("group", ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", ANY, None), ("ip", ANY, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_filters_that_make_no_sense(send: Send, components: list[tuple[str, int, str | None]], code: ErrorCode) -> None:
    asked = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
    answer = send(DescribeClientQuotasRequest(components=asked), 0)
    assert (answer.error_code, answer.entries) == (code, None)


def test_quotas_and_credentials_of_a_user_leave_each_other_alone(send: Send) -> None:
    """They are in one node of the store, as in Kafka."""
    user: Entity = {"user": "carol"}
    name, mechanism = "carol", 1
    upsertion = ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=4096, salt=b"salt", salted_password=bytes(32)
    )
    assert alter(send, user, {"producer_byte_rate": 1}) == 0
    assert send(AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0).results[0].error_code == 0
    assert alter(send, user, {"consumer_byte_rate": 2, "SCRAM-SHA-256": None}) == 0
    assert describe(send) == {key(user): {"producer_byte_rate": 1, "consumer_byte_rate": 2}}
    (found,) = send(DescribeUserScramCredentialsRequest(users=None), 0).results
    assert (found.user, [each.iterations for each in found.credential_infos]) == (name, [4096])
    deletion = ScramCredentialDeletion(name=name, mechanism=mechanism)
    assert send(AlterUserScramCredentialsRequest(deletions=[deletion]), 0).results[0].error_code == 0
    assert describe(send) == {key(user): {"producer_byte_rate": 1, "consumer_byte_rate": 2}}
    assert alter(send, user, {"producer_byte_rate": None, "consumer_byte_rate": None}) == 0
    assert describe(send) == {}
