"""ApiVersions and InitProducerId: what a client asks before anything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.session import eventually
from ottla.handlers.api_versions import ASKING_SOFTWARE
from ottla.handlers.table import HANDLERS, SERVED, without_transactions_v2
from ottla.testing.kafka_versions import api_versions as api_versions_of
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

from ..helpers.zookeeper_broker import (
    AMONG_BROKERS_ON_A_ZOOKEEPER,
    QUORUM,
    SHARE_COORDINATOR,
    SHARE_MEMBERS,
    on_both_kinds,
)

__all__ = ["on_both_kinds"]

Send = Callable[..., Any]

OF_A_QUORUM = {
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.UPDATE_FEATURES,
    ApiKey.UNREGISTER_BROKER,
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
}

OF_NEWER_GROUPS = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
}


def api_versions(
    send: Send, version: int, name: str = "tests", software: str = "1.0", **fields: Any
) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=software, **fields)
    response = send(request, version)
    assert isinstance(response, ApiVersionsResponse)
    return response


@pytest.mark.parametrize("version", range(6))
def test_every_version_names_what_is_served(send: Send, cluster_kind: str, version: int) -> None:
    response = api_versions(send, version)
    assert response.error_code == ErrorCode.NONE
    served = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
    expected = {handler.api_key for handler in HANDLERS} - {ApiKey.DESCRIBE_INSIDE}
    if cluster_kind == QUORUM:
        expected = expected - AMONG_BROKERS_ON_A_ZOOKEEPER | OF_A_QUORUM
    else:
        expected -= OF_NEWER_GROUPS | SHARE_COORDINATOR | SHARE_MEMBERS
    assert served.keys() == expected
    assert served[ApiKey.PRODUCE] == (0, 13 if cluster_kind == QUORUM else 11)
    assert served[ApiKey.FETCH] == (4, 18)


@pytest.mark.parametrize("word", ["a", "1", "a-b", "a.b", "a--b", "a" * 300])
def test_legal_software(send: Send, word: str) -> None:
    assert api_versions(send, 3, word, word).error_code == ErrorCode.NONE


@pytest.mark.parametrize("word", ["", "-a", "a-", ".", "a b", "a_b", "a\n", "\u00e4"])
def test_illegal_software(send: Send, word: str) -> None:
    for name, software in ((word, "1"), ("a", word)):
        response = api_versions(send, 3, name, software)
        assert (response.error_code, response.api_keys) == (ErrorCode.INVALID_REQUEST, [])
    # Before version 3 clients do not say what they are, and the connection is as good as before.
    assert api_versions(send, 2).error_code == ErrorCode.NONE


def test_whom_the_client_believes_it_talks_to(send: Send) -> None:
    cluster = send(DescribeClusterRequest(), 0)
    (broker,) = cluster.brokers
    for fields, code in (
        ({"cluster_id": cluster.cluster_id, "node_id": broker.broker_id}, ErrorCode.NONE),
        ({"cluster_id": "another"}, ErrorCode.REBOOTSTRAP_REQUIRED),
        ({"cluster_id": cluster.cluster_id, "node_id": broker.broker_id + 1}, ErrorCode.REBOOTSTRAP_REQUIRED),
    ):
        assert api_versions(send, 5, **fields).error_code == code


def initialized(send: Send, request: InitProducerIdRequest, version: int) -> InitProducerIdResponse:
    """The answer of a broker that has its first block of ids, which comes a moment after the start."""

    def answered() -> InitProducerIdResponse | None:
        response = send(request, version)
        assert isinstance(response, InitProducerIdResponse)
        return response if response.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else None

    response = eventually(answered)
    assert response is not None
    return response


@pytest.mark.parametrize("version", range(6))
def test_producer_ids_are_new_each_time(send: Send, version: int) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    answers = [initialized(send, request, version) for _ in range(3)]
    assert {(answer.error_code, answer.producer_epoch) for answer in answers} == {(ErrorCode.NONE, 0)}
    first, second, third = (answer.producer_id for answer in answers)
    assert 0 <= first < second < third


@pytest.mark.parametrize(
    ("producer_id", "epoch", "code"),
    [
        (5, 3, ErrorCode.NONE),
        (5, 32767, ErrorCode.NONE),
        (5, -1, ErrorCode.INVALID_REQUEST),
        (-1, 4, ErrorCode.INVALID_REQUEST),
        (-1, -2, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_producer_with_an_id_gets_another(send: Send, producer_id: int, epoch: int, code: ErrorCode) -> None:
    request = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=1000, producer_id=producer_id, producer_epoch=epoch
    )
    answer = initialized(send, request, 4)
    assert answer.error_code == code
    assert (answer.producer_epoch == 0) == (code == ErrorCode.NONE)


@pytest.mark.parametrize(
    ("transactional_id", "code"),
    [("", ErrorCode.INVALID_REQUEST), ("tx", ErrorCode.NOT_COORDINATOR)],
)
def test_transactional_ids_of_nobody_or_of_another_coordinator(
    send: Send, transactional_id: str, code: ErrorCode
) -> None:
    answer = send(InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1000), 2)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)


def test_on_a_zookeeper_nothing_is_served_that_a_coordinator_of_kafka_3_9_could_not_go_on_with() -> None:
    kafka = api_versions_of("3.9")
    served = without_transactions_v2(SERVED).by_key
    ends = (ApiKey.PRODUCE, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN)
    enters = (ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN)
    assert {key: served[key].highest for key in (*ends, *enters)} == {key: kafka[key][1] for key in (*ends, *enters)}
    assert served.keys() == SERVED.by_key.keys()
    assert all(served[key].highest == SERVED.by_key[key].highest for key in served.keys() - set(ends))


def test_only_a_broker_of_ottla_is_told_of_what_is_not_kafkas(send: Send) -> None:
    def told(name: str) -> bool:
        return ApiKey.DESCRIBE_INSIDE in {each.api_key for each in api_versions(send, 3, name).api_keys}

    assert told(ASKING_SOFTWARE)
    assert not told("apache-kafka-java")
