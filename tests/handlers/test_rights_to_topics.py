"""Rights to topics where a request takes its time, or costs something: what is looked at is what is done, and comes first."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import pytest
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.requests import batch, produce_request
from ottla.handlers.config_resources import ConfigResourceKind as ConfigType
from ottla.security.acl import AclBinding, AclEntry, Operation, Permission, ResourcePattern, ResourceType
from ottla.security.authorizer_settings import ACL_AUTHORIZER
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

from ..helpers.memory_cluster import MemoryCluster, running

PROPERTIES = {"authorizer_class_name": ACL_AUTHORIZER, "allow_everyone_if_no_acl_found": "true"}


async def deny(cluster: MemoryCluster, operation: Operation) -> None:
    """Have nobody do this to topic t."""
    acls = cluster.services(1).cluster
    denied = AclEntry("User:*", Permission.DENY, "*", operation)
    assert await acls.create_acls([AclBinding(ResourcePattern(ResourceType.TOPIC, "t"), denied)]) == [None]


async def test_a_topic_that_an_id_stands_for_only_later_is_not_written_to_without_the_right(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """Rights were looked at for the name that the id had then: none."""
    async with running(1, **PROPERTIES) as cluster:
        topic_id = await cluster.create("t", [1])
        await deny(cluster, Operation.WRITE)
        names = iter([None, "t", "t"])
        monkeypatch.setattr(cluster.services(1).metadata, "topic_name", lambda topic_id: next(names))
        request = produce_request("t", {0: batch(b"a")})
        request.topic_data[0].topic_id = topic_id
        (answered,) = (await cluster.ask(1, request, 13)).responses
        assert answered.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_what_is_set_on_a_topic_is_not_read_for_a_client_without_the_right(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(1, 2, **PROPERTIES) as cluster:
        await cluster.create("t", [1, 2])
        await deny(cluster, Operation.DESCRIBE_CONFIGS)
        configs = cluster.services(1).cluster.configs
        read: list[str] = []
        load = configs.load

        async def counted(topics: Iterable[str]) -> None:
            read.extend(names := list(topics))
            await load(names)

        monkeypatch.setattr(configs, "load", counted)
        resources = [DescribeConfigsResource(resource_type=ConfigType.TOPIC, resource_name="t")]
        (answer,) = (await cluster.ask(1, DescribeConfigsRequest(resources=resources), 4)).results
        assert answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert read == []


async def test_a_produce_is_refused_for_some_topics_and_asks_once_for_each(
    caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock
) -> None:
    """However often it names one: a request is one access in the audit log."""
    async with running(1, **PROPERTIES) as cluster:
        await cluster.create("t", [1])
        await cluster.create("u", [1])
        await deny(cluster, Operation.WRITE)
        request = produce_request("t", {0: batch(b"a")})
        for name in "utu":
            request.topic_data += produce_request(name, {0: batch(b"b")}).topic_data
        with caplog.at_level(logging.DEBUG, "kafka.authorizer.logger"):
            answered = (await cluster.ask(1, request, 9)).responses
        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert [(topic.name, topic.partition_responses[0].error_code) for topic in answered] == [
            ("t", refused),
            ("u", ErrorCode.NONE),
        ] * 2
        denied, allowed = caplog.messages
        assert "Denied Operation = Write" in denied and "Topic:LITERAL:t for request = Produce" in denied
        assert "Allowed Operation = Write" in allowed and "Topic:LITERAL:u for request = Produce" in allowed


async def test_a_batch_of_a_transaction_needs_the_right_to_its_id_before_any_topic_is_looked_at(
    caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock
) -> None:
    """Also where it is not the first batch of the request."""
    async with running(1, **PROPERTIES) as cluster:
        await cluster.create("t", [1], [1])
        nobody = AclEntry("User:*", Permission.DENY, "*", Operation.WRITE)
        pattern = ResourcePattern(ResourceType.TRANSACTIONAL_ID, "x")
        assert await cluster.services(1).commands.create_acls([AclBinding(pattern, nobody)]) == [None]
        of_transaction = batch(b"b", is_transactional=True, producer_id=8, producer_epoch=0, base_sequence=0)
        request = produce_request("t", {0: batch(b"a"), 1: of_transaction}, transactional_id="x")
        with caplog.at_level(logging.DEBUG, "kafka.authorizer.logger"):
            (answered,) = (await cluster.ask(1, request, 9)).responses
        codes = {answer.error_code for answer in answered.partition_responses}
        assert codes == {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
        (line,) = caplog.messages
        assert "TransactionalId:LITERAL:x" in line
