"""``ottla acls …``, and Kafka's own kafka-acls, on a broker with an authorizer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ottla
from ottla.security.authorizer_settings import STANDARD_AUTHORIZER

from ...helpers.command import Command

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def secured() -> Iterator[ottla.Broker]:
    properties = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS;User:admin"}
    with ottla.Broker(properties=properties) as broker:
        yield broker


@pytest.fixture
def acls(secured: ottla.Broker) -> Iterator[Command]:
    command = Command(secured.bootstrap_servers)
    yield command
    command("acls", "remove", "--operation", "all,read,write,create,describe,alter,idempotent-write")


def test_rules_are_added_listed_and_removed(acls: Command) -> None:
    said = acls("acls", "add", "--principal", "User:alice", "--operation", "read,write", "--topic", "orders")
    assert said.startswith("Added 2 rules:\n")
    acls("acls", "add", "--principal", "User:*", "--operation", "all", "--topic", "ord", "--prefixed", "--deny")
    assert acls.rows("acls", "list") == [
        ["topic", "ord", "prefixed", "User:*", "deny", "all", "*"],
        ["topic", "orders", "literal", "User:alice", "allow", "read", "*"],
        ["topic", "orders", "literal", "User:alice", "allow", "write", "*"],
    ]
    assert len(acls.rows("acls", "list", "--topic", "orders")) == 2
    assert len(acls.rows("acls", "list", "--topic", "orders", "--affecting")) == 3
    (listed,) = acls.json("acls", "list", "--principal", "User:*")
    assert listed == {
        "resource": "topic",
        "name": "ord",
        "pattern": "prefixed",
        "principal": "User:*",
        "permission": "deny",
        "operation": "all",
        "host": "*",
    }
    removed = acls("acls", "remove", "--principal", "User:alice", "--operation", "read")
    assert removed.startswith("Removed 1 rule:\n")
    assert len(acls.rows("acls", "list")) == 2


def test_what_producers_and_consumers_need(acls: Command) -> None:
    acls("acls", "add", "--principal", "User:p", "--producer", "--topic", "t", "--transactional-id", "x")
    acls("acls", "add", "--principal", "User:c", "--consumer", "--topic", "t", "--group", "g", "--host", "10.0.0.1")
    found = {(row[0], row[3], row[5], row[6]) for row in acls.rows("acls", "list")}
    assert found == {
        ("topic", "User:p", "write", "*"),
        ("topic", "User:p", "describe", "*"),
        ("topic", "User:p", "create", "*"),
        ("transactional-id", "User:p", "write", "*"),
        ("transactional-id", "User:p", "describe", "*"),
        ("topic", "User:c", "read", "10.0.0.1"),
        ("topic", "User:c", "describe", "10.0.0.1"),
        ("group", "User:c", "read", "10.0.0.1"),
    }


def test_what_makes_no_sense_is_said(acls: Command, command: Command) -> None:
    topic = ("--topic", "t")
    assert "say for whom" in acls.refused("acls", "add", "--operation", "read", *topic, code=2)
    alice = ("--principal", "User:alice")
    assert "say which rights" in acls.refused("acls", "add", *alice, *topic, code=2)
    assert "there is no operation reed" in acls.refused("acls", "add", *alice, "--operation", "reed", *topic, code=2)
    no_operation = acls.refused("acls", "add", *alice, "--operation", "cluster-action", *topic, code=2)
    assert "none of these rights is one of topic t" in no_operation
    assert "say which rules" in acls.refused("acls", "remove", code=2)
    assert "No Authorizer is configured" in command.refused("acls", "list")
