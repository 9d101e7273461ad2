"""Changes of rules, credentials and tokens that the captured files don't have. Facts from Kafka's AclControlManagerTest and
ScramControlManagerTest.
"""

from __future__ import annotations

import itertools

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.controller.quorum.active.acls import create_acls, delete_acls
from ottla.controller.quorum.active.result import MAX_RECORDS
from ottla.controller.quorum.active.scram import alter_scram_credentials
from ottla.controller.quorum.active.tokens import (
    MAX_REMOVED,
    TokenRules,
    create_token,
    expire_token,
    remove_expired_tokens,
    renew_token,
)
from ottla.metadata.image import ClusterImage
from ottla.security.acl import Operation, PatternType, Permission, ResourceType
from ottla.security.delegation import Lifetimes
from ottla.security.principal import Principal
from ottla.wire.messages.access_records import RemoveDelegationTokenRecord
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest

from .helpers.cluster_images import cluster, replayed

NOW = 1_700_000_000_000
ALICE = Principal("User", "alice")
TOKENS = TokenRules("secret", Lifetimes(1_000, 500))


def _with_rules(names: list[str]) -> ClusterImage:
    creations = [
        AclCreation(
            resource_type=ResourceType.TOPIC,
            resource_name=name,
            principal="User:user",
            host="10.0.0.1",
            operation=Operation.ALL,
            permission_type=Permission.ALLOW,
        )
        for name in names
    ]
    numbers = itertools.count(1)
    image = cluster()
    result = create_acls(image, CreateAclsRequest(creations=creations), lambda: next(numbers).to_bytes(16, "big"))
    return replayed(image, result)


def _filter(name: str | None) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=ResourceType.ANY,
        resource_name_filter=name,
        pattern_type_filter=PatternType.ANY,
        principal_filter=None,
        host_filter=None,
        operation=Operation.ANY,
        permission_type=Permission.ANY,
    )


@pytest.mark.parametrize("names", [[None], ["topic-1"], [None, "topic-1"]], ids=str)
def test_a_rule_is_removed_once_and_is_in_the_result_of_each_filter(names: list[str | None]) -> None:
    image = _with_rules(["topic-1"])
    result = delete_acls(image, DeleteAclsRequest(filters=[_filter(name) for name in names]))
    assert len(result.records) == 1
    assert [len(each.matching_acls) for each in result.response.filter_results] == [1] * len(names)
    assert not replayed(image, result).acls


def test_more_rules_than_an_operation_may_remove_stay() -> None:
    image = _with_rules([str(number) for number in range(MAX_RECORDS)])
    assert len(delete_acls(image, DeleteAclsRequest(filters=[_filter(None)])).records) == MAX_RECORDS
    more = replayed(
        image,
        create_acls(
            image,
            CreateAclsRequest(
                creations=[
                    AclCreation(
                        resource_type=ResourceType.GROUP,
                        resource_name="g",
                        principal="User:user",
                        host="*",
                        operation=Operation.READ,
                        permission_type=Permission.DENY,
                    )
                ]
            ),
            lambda: b"\xff" * 16,
        ),
    )
    with pytest.raises(KafkaError) as raised:
        delete_acls(more, DeleteAclsRequest(filters=[_filter(None)]))
    assert raised.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        pytest.param(["+a1", "+a2"], {"a": "DUPLICATE_RESOURCE"}, id="two mechanisms"),
        pytest.param(["+a1", "+a1", "+a1"], {"a": "DUPLICATE_RESOURCE"}, id="three times"),
        pytest.param(["-a1", "+a1"], {"a": "RESOURCE_NOT_FOUND"}, id="the first error stands"),
        pytest.param(["+a1", "+b2"], {"a": "NONE", "b": "NONE"}, id="two users"),
        pytest.param(["+a3", "+a1"], {"a": "UNSUPPORTED_SASL_MECHANISM"}, id="an unknown mechanism first"),
    ],
)
def test_a_user_has_one_change_in_a_request(changes: list[str], errors: dict[str, str]) -> None:
    request = AlterUserScramCredentialsRequest()
    for sign, name, mechanism in changes:
        if sign == "-":
            request.deletions.append(ScramCredentialDeletion(name=name, mechanism=int(mechanism)))
        else:
            request.upsertions.append(
                ScramCredentialUpsertion(
                    name=name, mechanism=int(mechanism), iterations=4096, salt=b"salt", salted_password=b"password"
                )
            )
    result = alter_scram_credentials(cluster(), request)
    assert {each.user: ErrorCode(each.error_code).name for each in result.response.results} == errors
    assert len(result.records) == [*errors.values()].count("NONE")


def test_without_a_secret_there_are_no_tokens() -> None:
    image, rules = cluster(), TokenRules(None, TOKENS.lifetimes)
    results = (
        create_token(image, CreateDelegationTokenRequest(), ALICE, rules, "id", NOW),
        renew_token(image, RenewDelegationTokenRequest(), ALICE, rules, NOW),
        expire_token(image, ExpireDelegationTokenRequest(), ALICE, rules, NOW),
    )
    for result in results:
        assert result.response.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        assert not result.records


def _with_tokens(count: int) -> ClusterImage:
    image = cluster()
    for number in range(count):
        request = CreateDelegationTokenRequest(max_lifetime_ms=-1)
        image = replayed(image, create_token(image, request, ALICE, TOKENS, f"token {number}", NOW + number))
    return image


@pytest.mark.parametrize(("now_ms", "removed"), [(NOW, 0), (NOW + 500, 0), (NOW + 502, 2), (NOW + 900, 3)])
def test_tokens_that_are_over_are_removed(now_ms: int, removed: int) -> None:
    result = remove_expired_tokens(_with_tokens(3), now_ms)
    assert [record for record, _ in result.records] == [
        RemoveDelegationTokenRecord(token_id=f"token {number}") for number in range(removed)
    ]
    assert (result.response, result.is_atomic) == (False, False)


def test_so_many_tokens_are_removed_at_a_time() -> None:
    image = _with_tokens(MAX_REMOVED + 1)
    result = remove_expired_tokens(image, NOW + 10_000)
    assert (len(result.records), result.response) == (MAX_REMOVED, True)
    result = remove_expired_tokens(replayed(image, result), NOW + 10_000)
    assert (len(result.records), result.response) == (1, False)
