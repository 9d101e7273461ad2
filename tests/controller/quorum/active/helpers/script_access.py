"""Steps with access: rules, SCRAM credentials and delegation tokens."""

from __future__ import annotations

import time
from typing import Any

from ottla.security.acl import Operation, PatternType, Permission, ResourceType
from ottla.wire.api_keys import ApiKey

from .capture_kafka import Capture

_DAY_MS = 24 * 3_600_000
_PUBLISHED_S = 0.3
"""Until Kafka's cache of tokens, which its controller asks, has what the step before has changed."""
_ALICE, _BOB = "User:alice", "User:bob"


def acls(capture: Capture) -> None:
    """Some rules are left."""
    _create_rules(capture)
    _delete_rules(capture)


def _rule(name: str, **changed: Any) -> dict[str, Any]:
    return {
        "resource_type": int(ResourceType.TOPIC),
        "resource_name": name,
        "principal": _ALICE,
        "host": "*",
        "operation": int(Operation.READ),
        "permission_type": int(Permission.ALLOW),
        **changed,
    }


def _pattern(**changed: Any) -> dict[str, Any]:
    return {
        "resource_type_filter": int(ResourceType.ANY),
        "resource_name_filter": None,
        "pattern_type_filter": int(PatternType.ANY),
        "principal_filter": None,
        "host_filter": None,
        "operation": int(Operation.ANY),
        "permission_type": int(Permission.ANY),
        **changed,
    }


def _create_rules(capture: Capture) -> None:
    def create(about: str, *rules: dict[str, Any], version: int = 3) -> None:
        capture.call(about, ApiKey.CREATE_ACLS, version, creations=list(rules))

    create("one rule", _rule("a"))
    create("it exists already", _rule("a"))
    create(
        "several, one of them twice",
        _rule("b"),
        _rule("c"),
        _rule("b"),
        _rule("d", permission_type=int(Permission.DENY)),
    )
    create("a prefix", _rule("pre", resource_pattern_type=int(PatternType.PREFIXED)))
    create("all topics, by version 1", _rule("*", host="127.0.0.1"), version=1)
    create(
        "the cluster", _rule("kafka-cluster", resource_type=int(ResourceType.CLUSTER), operation=int(Operation.ALTER))
    )
    create(
        "a group, an id of transactions, a token and a user",
        *(
            _rule("x", resource_type=int(kind), operation=int(Operation.DESCRIBE))
            for kind in (
                ResourceType.GROUP,
                ResourceType.TRANSACTIONAL_ID,
                ResourceType.DELEGATION_TOKEN,
                ResourceType.USER,
            )
        ),
    )
    create("an operation that the resource does not have", _rule("a", operation=int(Operation.IDEMPOTENT_WRITE)))
    create("none")
    for about, bad in {
        "another name of the cluster": _rule("x", resource_type=int(ResourceType.CLUSTER)),
        "an empty name": _rule(""),
        "any type": _rule("a", resource_type=int(ResourceType.ANY)),
        "an unknown type": _rule("a", resource_type=77),
        "any pattern": _rule("a", resource_pattern_type=int(PatternType.ANY)),
        "a pattern to match": _rule("a", resource_pattern_type=int(PatternType.MATCH)),
        "an unknown pattern": _rule("a", resource_pattern_type=77),
        "any operation": _rule("a", operation=int(Operation.ANY)),
        "an unknown operation": _rule("a", operation=77),
        "any permission": _rule("a", permission_type=int(Permission.ANY)),
        "an unknown permission": _rule("a", permission_type=77),
        "a principal without a colon": _rule("a", principal="alice"),
        "an empty principal": _rule("a", principal=""),
    }.items():
        create(f"refused: {about}", bad)
    create("one of two is refused", _rule("e"), _rule("e", principal="alice"))


def _delete_rules(capture: Capture) -> None:
    def delete(about: str, *filters: dict[str, Any]) -> None:
        capture.call(about, ApiKey.DELETE_ACLS, 3, filters=list(filters))

    delete("one by its name", _pattern(resource_name_filter="a", resource_type_filter=int(ResourceType.TOPIC)))
    delete("none is left", _pattern(resource_name_filter="a", resource_type_filter=int(ResourceType.TOPIC)))
    delete("all that match a name", _pattern(resource_name_filter="prefix", pattern_type_filter=int(PatternType.MATCH)))
    delete("by what is denied, and the same again", *[_pattern(permission_type=int(Permission.DENY))] * 2)
    delete("nothing", _pattern(principal_filter=_BOB))
    delete("no filters")
    for name in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"):
        delete(f"refused: an unknown {name}", _pattern(**{name: 77}))
    delete("all of an operation", _pattern(operation=int(Operation.DESCRIBE)))


def scram(capture: Capture) -> None:
    """Users alice and bob have credentials."""

    def insertion(name: str, mechanism: int = 1, iterations: int = 4096) -> dict[str, Any]:
        salt, password = b"salt of " + name.encode(), b"salted password of " + name.encode()
        return {
            "name": name,
            "mechanism": mechanism,
            "iterations": iterations,
            "salt": salt.hex(),
            "salted_password": password.hex(),
        }

    def deletion(name: str, mechanism: int = 1) -> dict[str, Any]:
        return {"name": name, "mechanism": mechanism}

    def change(about: str, deletions: list[dict[str, Any]], upsertions: list[dict[str, Any]]) -> None:
        capture.call(about, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=deletions, upsertions=upsertions)

    change("two users", [], [insertion("alice"), insertion("bob", 2, 8192)])
    change("one is replaced", [], [insertion("alice", 1, 16384)])
    change("another mechanism of the same user", [], [insertion("alice", 2)])
    change("one is removed, and one is set", [deletion("alice", 2)], [insertion("carol")])
    change("one is removed", [deletion("carol")], [])
    change("nothing", [], [])
    change("refused: one is removed that does not exist", [deletion("carol")], [])
    change("refused: another mechanism is removed", [deletion("alice", 2)], [])
    change("refused: removed twice", [deletion("alice"), deletion("alice")], [])
    change("refused: set twice", [], [insertion("alice"), insertion("alice", 2)])
    change("refused: removed and set", [deletion("alice")], [insertion("alice", 2)])
    change("refused: no name", [deletion("")], [insertion("dora"), insertion("")])
    change("refused: an unknown mechanism to set", [], [insertion("alice", 0)])
    change("refused: an unknown mechanism to remove", [deletion("alice", 9)], [])
    change("refused: too few iterations", [], [insertion("alice", 1, 4095)])
    change("refused: too many iterations", [], [insertion("alice", 1, 16385)])
    change("refused: an error, and a third time", [deletion("zoe")], [insertion("zoe"), insertion("zoe")])
    change("one of two is refused", [], [insertion("alice", 1, 1), insertion("erin")])


def tokens(capture: Capture) -> None:
    """Tokens of alice. All requests about tokens but one come in envelopes."""

    def create(about: str, principal: str | None = _ALICE, **fields: Any) -> Any:
        time.sleep(_PUBLISHED_S)
        renewers = [{"principal_type": kind, "principal_name": name} for kind, name in fields.pop("renewers", [])]
        return capture.call(
            about,
            ApiKey.CREATE_DELEGATION_TOKEN,
            3,
            principal=principal,
            now=lambda response: response.issue_timestamp_ms,
            **{"owner_principal_type": None, "owner_principal_name": None, "max_lifetime_ms": -1, **fields},
            renewers=renewers,
        )

    def named(response: Any) -> str:
        return f"hmac of {capture.names.text(response, len(capture.steps) - 1)['token_id']}"

    def renew(about: str, hmac: str, period_ms: int, told_ms: int, principal: str | None = _ALICE) -> None:
        time.sleep(_PUBLISHED_S)
        capture.call(
            about,
            ApiKey.RENEW_DELEGATION_TOKEN,
            2,
            principal=principal,
            now=lambda response: response.expiry_timestamp_ms - told_ms,
            hmac=hmac,
            renew_period_ms=period_ms,
        )

    def expire(about: str, hmac: str, period_ms: int, principal: str | None = _ALICE) -> None:
        time.sleep(_PUBLISHED_S)
        told_ms = max(period_ms, 0)
        capture.call(
            about,
            ApiKey.EXPIRE_DELEGATION_TOKEN,
            2,
            principal=principal,
            now=lambda response: response.expiry_timestamp_ms - told_ms,
            hmac=hmac,
            expiry_time_period_ms=period_ms,
        )

    first = named(create("a token"))
    second = named(create("a token for 2 hours, with a renewer", renewers=[("User", "bob")], max_lifetime_ms=7_200_000))
    third = named(create("a token that may live longer than any", max_lifetime_ms=100 * _DAY_MS))
    create("a token for another owner", "User:ANONYMOUS", owner_principal_type="User", owner_principal_name="carol")
    create("refused: a renewer that is no user", renewers=[("Group", "g")])
    create("refused: not in an envelope", None)
    renew("renewed by its owner for an hour", first, 3_600_000, 3_600_000)
    renew("renewed for as long as it is usual", first, -1, _DAY_MS)
    renew("renewed for longer than is usual", first, 2 * _DAY_MS, _DAY_MS)
    renew("renewed by the renewer", second, 60_000, 60_000, _BOB)
    renew("refused: an unknown token", "00ff", 1, 0)
    renew("refused: another user", first, 1, 0, "User:eve")
    renew("refused: not in an envelope", first, 1, 0, None)
    expire("expires in a minute", first, 60_000)
    expire("refused: an unknown token", "00ff", 1)
    expire("refused: another user", first, 1, "User:eve")
    expire("expires at once, by the renewer", second, -1, _BOB)
    expire("refused: it is gone", second, -1)
    expire("expires at once", third, 0)
    renew("refused: it has expired", third, 60_000, 0)
    renew("refused: it has expired, and another user asks", third, 60_000, 0, "User:eve")
    expire("refused: another user, and it has expired", third, 60_000, "User:eve")
    expire("refused: it has expired, and cannot live on", third, 60_000)
    short = named(create("a token of a millisecond", max_lifetime_ms=1))
    renew("refused: its longest life is over", short, 60_000, 0)
    expire("what has expired is removed at once", third, -1)
