"""Errors in a response, found wherever they stand."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.wire.api_keys import ApiKey
from ottla.wire.error_codes import error_finder, error_messages
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.wire.messages.metadata import MetadataResponse
from ottla.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from ottla.wire.registry import response_class
from ottla.wire.schema import Array, Struct


def test_partitions_and_the_response_itself() -> None:
    partitions = [PartitionData(partition_index=0), PartitionData(partition_index=1, error_code=3)]
    response = FetchResponse(error_code=70, responses=[FetchableTopicResponse(partitions=partitions)] * 2)
    assert list(error_finder(FetchResponse)(response)) == [70, 3, 3]


def test_no_error_is_nothing() -> None:
    topic = TopicProduceResponse(name="t", partition_responses=[PartitionProduceResponse(index=0)])
    assert not error_finder(ProduceResponse)(ProduceResponse(responses=[topic]))


def test_messages_stand_where_errors_do() -> None:
    refused = [PartitionProduceResponse(index=0, error_code=10, error_message=text) for text in ("first", None, "last")]
    topics = [TopicProduceResponse(name=name, partition_responses=refused) for name in ("a", "b")]
    response = ProduceResponse(responses=topics)
    assert [*error_messages(response)] == ["first", "last"] * 2
    assert [*error_messages(response, most=3)] == ["first"], "the response, a topic and its first partition"
    assert [*error_messages(MetadataResponse())] == []


def test_a_list_that_is_null() -> None:
    response = MetadataResponse()
    response.topics = None  # type: ignore[assignment]
    assert not error_finder(MetadataResponse)(response)


def filled(struct: type[Struct], code: int) -> tuple[Struct, int]:
    """A struct with one element in each list and ``code`` in each ``error_code``, and how many of these there are."""
    made: Any = struct()
    count = 0
    for spec in struct.fields:
        inner = spec.type.element if isinstance(spec.type, Array) else spec.type
        if spec.name == "error_code":
            setattr(made, spec.name, code)
            count += 1
        elif isinstance(inner, type):
            value, found = filled(inner, code)
            setattr(made, spec.name, [value] if isinstance(spec.type, Array) else value)
            count += found
    return made, count


@pytest.mark.parametrize("key", ApiKey, ids=lambda key: key.name)
def test_every_response_is_looked_through(key: ApiKey) -> None:
    response, count = filled(response_class(key), 42)
    assert list(error_finder(type(response))(response)) == [42] * count  # type: ignore[arg-type]
