"""What access rules say: case by case, and against a restatement of the rules that looks at every binding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.security.acl import (
    EVERYBODY,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AclBinding,
    AclEntry,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
    code_name,
    constant_name,
)
from ottla.security.acl_rules import AclRules, select

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = Permission.ALLOW, Permission.DENY
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
ALICE, BOB = "User:alice", "User:bob"


def binding(
    name: str,
    permission: Permission,
    operation: Operation,
    *,
    principal: str = ALICE,
    host: str = WILDCARD,
    pattern_type: PatternType = LITERAL,
    resource_type: ResourceType = TOPIC,
) -> AclBinding:
    return AclBinding(
        ResourcePattern(resource_type, name, pattern_type), AclEntry(principal, permission, host, operation)
    )


def rules_of(bindings: Iterable[AclBinding], *, allow_everyone: bool = False) -> AclRules:
    rules = AclRules(allow_everyone_if_no_acl_found=allow_everyone)
    for pattern, entry in bindings:
        rules.put(pattern, rules.entries(pattern) | {entry})
    return rules


def can(rules: AclRules, operation: Operation, name: str = "t", principal: str = ALICE, host: str = "10.0.0.1") -> bool:
    return rules.allow(principal, host, operation, TOPIC, name)


@pytest.mark.parametrize(
    ("stored", "host"),
    [
        ("0:0:0:0:0:0:0:1", "::1"),  # as a broker of Kafka stores what it has from Java
        ("::1", "::1"),
        ("2001:DB8::A", "2001:db8::a"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("10.0.0.1", "::ffff:10.0.0.1"),
    ],
)
def test_an_address_is_the_same_however_it_is_written(stored: str, host: str) -> None:
    rules = rules_of([binding("t", ALLOW, READ), binding("t", DENY, READ, host=stored)])
    assert not can(rules, READ, host=host)
    assert can(rules, READ, host="::2")
    of_host = rules_of([binding("t", ALLOW, READ, host=stored)])
    assert can(of_host, READ, host=host)
    assert of_host.allow_any(ALICE, host, READ, TOPIC)
    assert not of_host.allow_any(ALICE, "::2", READ, TOPIC)


def test_without_a_rule_nothing_is_allowed_unless_that_is_configured() -> None:
    assert not can(rules_of([]), READ)
    assert can(rules_of([], allow_everyone=True), READ)


def test_one_rule_for_anybody_ends_what_everyone_may_do_without() -> None:
    rules = rules_of([binding("t", ALLOW, READ, principal=BOB)], allow_everyone=True)
    assert not can(rules, READ)
    assert can(rules, READ, "other")


@pytest.mark.parametrize("operation", [READ, WRITE, Operation.DELETE, Operation.ALTER])
def test_allowing_these_allows_describe_and_denying_them_does_not_deny_it(operation: Operation) -> None:
    assert can(rules_of([binding("t", ALLOW, operation)]), DESCRIBE)
    assert can(rules_of([binding("t", DENY, operation), binding("t", ALLOW, DESCRIBE)]), DESCRIBE)


def test_altering_configs_allows_describing_them() -> None:
    rules = rules_of([binding("t", ALLOW, Operation.ALTER_CONFIGS)])
    assert can(rules, Operation.DESCRIBE_CONFIGS)
    assert not can(rules, DESCRIBE)


def test_a_denial_goes_before_everything_that_allows() -> None:
    rules = rules_of([binding("t", ALLOW, Operation.ALL), binding(WILDCARD, DENY, READ, principal=EVERYBODY)])
    assert not can(rules, READ)
    assert can(rules, WRITE)


def test_hosts_are_compared_as_text() -> None:
    rules = rules_of([binding("t", ALLOW, READ, host="10.0.0.1")])
    assert can(rules, READ)
    assert not can(rules, READ, host="10.0.0.10")


def test_prefixes_of_the_name_count() -> None:
    rules = rules_of([binding("team-", ALLOW, READ, pattern_type=PREFIXED)])
    assert can(rules, READ, "team-orders")
    assert can(rules, READ, "team-")
    assert not can(rules, READ, "team")


def test_java_names() -> None:
    assert code_name(Operation.IDEMPOTENT_WRITE) == "IdempotentWrite"
    assert constant_name("IdempotentWrite") == constant_name("IDEMPOTENT_WRITE") == "IDEMPOTENT_WRITE"


def test_match_selects_what_is_about_a_name() -> None:
    here = binding("team-a", ALLOW, READ)
    prefix = binding("team-", ALLOW, READ, pattern_type=PREFIXED)
    all_names = binding(WILDCARD, ALLOW, READ)
    bindings = [here, prefix, all_names, binding("team-b", ALLOW, READ)]
    acls = {pattern: frozenset({entry}) for pattern, entry in bindings}
    assert set(select(acls, AclFilter(TOPIC, "team-a", PatternType.MATCH))) == {here, prefix, all_names}
    assert select(acls, AclFilter(TOPIC, "team-a", LITERAL)) == [here]
    assert select(acls, AclFilter(TOPIC, "team-", PatternType.ANY)) == [prefix]


# Against a restatement. Names are of the letters a and b, so that rules meet; z begins names of which no rule speaks.

names = st.text("ab", min_size=1, max_size=3)
bindings = st.builds(
    AclBinding,
    st.one_of(
        st.builds(ResourcePattern, st.sampled_from([TOPIC, GROUP]), names | st.just(WILDCARD), st.just(LITERAL)),
        st.builds(ResourcePattern, st.sampled_from([TOPIC, GROUP]), names, st.just(PREFIXED)),
    ),
    st.builds(
        AclEntry,
        st.sampled_from([ALICE, BOB, EVERYBODY]),
        st.sampled_from([ALLOW, DENY]),
        st.sampled_from([WILDCARD, "10.0.0.1", "10.0.0.2"]),
        st.sampled_from([Operation.ALL, *SUPPORTED_OPERATIONS[TOPIC]]),
    ),
)


def naive(
    all_bindings: Sequence[AclBinding], operation: Operation, name: str, principal: str, host: str
) -> bool | None:
    """None where nothing is said about the topic at all."""

    def is_about(pattern: ResourcePattern) -> bool:
        if pattern.resource_type is not TOPIC:
            return False
        if pattern.pattern_type is PREFIXED:
            return name[: len(pattern.name)] == pattern.name
        return pattern.name == name or pattern.name == "*"

    about = [entry for pattern, entry in all_bindings if is_about(pattern)]
    if not about:
        return None
    mine = [e for e in about if e.principal in ("User:*", principal) and e.host in ("*", host)]
    if [e for e in mine if e.permission is DENY and (e.operation is operation or e.operation is Operation.ALL)]:
        return False
    allowed = {e.operation for e in mine if e.permission is ALLOW}
    if allowed & {READ, WRITE, Operation.DELETE, Operation.ALTER}:
        allowed.add(DESCRIBE)
    if Operation.ALTER_CONFIGS in allowed:
        allowed.add(Operation.DESCRIBE_CONFIGS)
    return operation in allowed or Operation.ALL in allowed


@settings(max_examples=300, deadline=None)
@given(
    st.lists(bindings, max_size=8),
    st.sampled_from(SUPPORTED_OPERATIONS[TOPIC]),
    names,
    st.sampled_from([ALICE, BOB]),
    st.sampled_from(["10.0.0.1", "10.0.0.2"]),
    st.booleans(),
)
def test_rules_say_what_their_restatement_says(
    all_bindings: list[AclBinding], operation: Operation, name: str, principal: str, host: str, allow_everyone: bool
) -> None:
    rules = rules_of(all_bindings, allow_everyone=allow_everyone)
    expected = naive(all_bindings, operation, name, principal, host)
    assert can(rules, operation, name, principal, host) is (allow_everyone if expected is None else expected)
    for pattern, _ in all_bindings * 2:
        rules.put(pattern, frozenset())
    assert can(rules, operation, name, principal, host) is allow_everyone


@settings(max_examples=300, deadline=None)
@given(st.lists(bindings, max_size=8), st.sampled_from([READ, WRITE]), st.sampled_from([ALICE, BOB]))
def test_some_topic_may_be_used_where_there_is_one_that_may(
    all_bindings: list[AclBinding], operation: Operation, principal: str
) -> None:
    rules = rules_of(all_bindings)
    host = "10.0.0.1"
    literal = {pattern.name for pattern, _ in all_bindings if pattern.pattern_type is LITERAL} - {WILDCARD}
    prefixes = {pattern.name + "z" for pattern, _ in all_bindings if pattern.pattern_type is PREFIXED}
    expected = any(can(rules, operation, name, principal, host) for name in {*literal, *prefixes, "z"})
    assert rules.allow_any(principal, host, operation, TOPIC) is expected


def test_whoever_may_do_anything_without_rules_may_write_to_some_topic_unless_all_are_denied() -> None:
    deny_prefix = binding("a", DENY, WRITE, pattern_type=PREFIXED)
    assert rules_of([deny_prefix], allow_everyone=True).allow_any(ALICE, "h", WRITE, TOPIC)
    deny_all = binding(WILDCARD, DENY, WRITE)
    assert not rules_of([deny_all], allow_everyone=True).allow_any(ALICE, "h", WRITE, TOPIC)
