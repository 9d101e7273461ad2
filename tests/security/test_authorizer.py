"""The authorizer: super users, decisions that are forgotten with a change, and what its audit log says."""

from __future__ import annotations

import dataclasses
import logging

import pytest

from ottla.security.acl import (
    AclEntry,
    Operation,
    Permission,
    ResourcePattern,
    ResourceType,
)
from ottla.security.acl_rules import AclRules
from ottla.security.audit import MOST_LINES, AuditLog
from ottla.security.authorizer import Authorizer
from ottla.security.principal import Principal

READ = Operation.READ
TOPIC = ResourceType.TOPIC


@dataclasses.dataclass
class Client:
    name: str = "alice"
    host: str = "10.0.0.1"

    @property
    def principal(self) -> Principal:
        return Principal("User", self.name)


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def authorizer(time: Time | None = None) -> Authorizer:
    return Authorizer(AclRules(), frozenset({"User:admin"}), AuditLog(time or Time()))


def entries(permission: Permission, operation: Operation) -> frozenset[AclEntry]:
    return frozenset({AclEntry("User:alice", permission, "*", operation)})


def test_a_super_user_may_do_what_is_denied_to_everybody() -> None:
    auth = authorizer()
    denial = AclEntry("User:*", Permission.DENY, "*", Operation.ALL)
    auth.change({ResourcePattern(TOPIC, "*"): frozenset({denial})})
    assert auth.allows(Client("admin"), READ, TOPIC, "t")
    assert auth.allows_by_resource_type(Client("admin"), READ, TOPIC)
    assert not auth.allows(Client("alice"), READ, TOPIC, "t")


def test_a_change_of_a_rule_is_seen_by_the_next_request() -> None:
    auth, client, pattern = authorizer(), Client(), ResourcePattern(TOPIC, "t")
    assert not auth.allows(client, READ, TOPIC, "t")
    assert not auth.allows_by_resource_type(client, READ, TOPIC)
    auth.change({pattern: entries(Permission.ALLOW, READ)})
    assert auth.allows(client, READ, TOPIC, "t")
    assert auth.allows_by_resource_type(client, READ, TOPIC)
    assert not auth.allows(Client(host="10.0.0.1", name="bob"), READ, TOPIC, "t")
    auth.change({pattern: frozenset()})
    assert not auth.allows(client, READ, TOPIC, "t")


def test_authorized_operations_are_a_bit_field() -> None:
    auth = authorizer()
    auth.change({ResourcePattern(TOPIC, "t"): entries(Permission.ALLOW, READ)})
    assert auth.authorized_operations(Client(), TOPIC, "t") == 1 << READ | 1 << Operation.DESCRIBE


def test_a_denial_is_logged_as_kafka_does_it(caplog: pytest.LogCaptureFixture) -> None:
    auth = authorizer()
    with caplog.at_level(logging.INFO, "kafka.authorizer.logger"):
        auth.allows(Client(), READ, TOPIC, "t", log_if_denied=False)
        assert not caplog.messages
        auth.allows(Client(), READ, TOPIC, "t", request="Fetch")
    (line,) = caplog.messages
    assert line == (
        "Principal = User:alice is Denied Operation = Read from host = 10.0.0.1 on resource = Topic:LITERAL:t "
        "for request = Fetch with resourceRefCount = 1"
    )


def test_what_is_allowed_is_logged_at_debug_level(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "kafka.authorizer.logger"):
        authorizer().allows(Client("admin"), READ, TOPIC, "t", request="Fetch")
    (line,) = caplog.messages
    assert "User:admin is Allowed Operation = Read" in line


def test_a_name_cannot_begin_a_line_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "kafka.authorizer.logger"):
        authorizer().allows(Client(), READ, TOPIC, "t\nPrincipal = User:bob is Denied\x1b[2J")
    (line,) = caplog.messages
    assert "\n" not in line and "\x1b" not in line


@pytest.mark.cpython
def test_long_names_that_clients_make_up_are_neither_kept_nor_written_out(caplog: pytest.LogCaptureFixture) -> None:
    """32,767 bytes are the longest that a request can have."""
    import tracemalloc

    auth = authorizer()
    auth.change({ResourcePattern(TOPIC, "x"): entries(Permission.ALLOW, READ)})
    tracemalloc.start()
    try:
        with caplog.at_level(logging.INFO, "kafka.authorizer.logger"):
            for number in range(300):
                assert not auth.allows(Client(), READ, TOPIC, f"{number:032767}")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 3_000_000
    assert len(caplog.messages) == 1
    (line,) = caplog.messages
    assert len(line) < 600 and "0… (32467 more characters)" in line


def test_a_client_that_is_denied_again_and_again_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    time = Time()
    auth = authorizer(time)
    with caplog.at_level(logging.INFO, "kafka.authorizer.logger"):
        for _ in range(3):
            auth.allows(Client(), READ, TOPIC, "t")
        assert len(caplog.messages) == 1
        for number in range(2 * MOST_LINES):
            auth.allows(Client(), READ, TOPIC, f"t{number}")
        assert len(caplog.messages) == MOST_LINES
        time.now = 61
        caplog.clear()
        auth.allows(Client(), READ, TOPIC, "t")
    assert caplog.messages[0] == "1003 more requests were denied, most of them like those before"
    assert len(caplog.messages) == 2
