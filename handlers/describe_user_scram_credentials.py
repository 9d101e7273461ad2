"""DescribeUserScramCredentials (key 50): which users have SCRAM credentials, with how many iterations (KIP-554).

Behaviour: no list, or an empty one, asks for every user who has credentials. A named user without any is RESOURCE_NOT_FOUND, as
is an empty name; one named twice is DUPLICATE_RESOURCE, once. Salts and keys are never in the answer. Any broker answers.
"""

from __future__ import annotations

from collections import Counter

from ..base.errors import ErrorCode, KafkaError
from ..controller.zookeeper.config_store import USERS, ConfigStore
from ..security.scram import SCRAM_MECHANISMS, parse_credential
from ..wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from .call import Call


async def handle(call: Call, request: DescribeUserScramCredentialsRequest) -> DescribeUserScramCredentialsResponse:
    configs = call.broker.configs
    if not request.users:
        return DescribeUserScramCredentialsResponse(results=_everybody(configs))
    counts = Counter(user.name for user in request.users)
    results = [_named(configs, name, count) for name, count in counts.items()]
    return DescribeUserScramCredentialsResponse(results=results)


def _everybody(configs: ConfigStore) -> list[DescribeUserScramCredentialsResult]:
    names = sorted(entity for entity in configs.entities(USERS) if isinstance(entity, str))
    results = [_described(configs, name) for name in names]
    return [result for result in results if result.credential_infos or result.error_code]


def _named(configs: ConfigStore, name: str, count: int) -> DescribeUserScramCredentialsResult:
    if not name:
        return _failed(name, KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "Username must not be empty"))
    if count > 1:
        why = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        return _failed(name, KafkaError(ErrorCode.DUPLICATE_RESOURCE, why))
    result = _described(configs, name)
    if not result.credential_infos and not result.error_code:
        why = f"Attempt to describe a user credential that does not exist: {name}"
        return _failed(name, KafkaError(ErrorCode.RESOURCE_NOT_FOUND, why))
    return result


def _described(configs: ConfigStore, name: str) -> DescribeUserScramCredentialsResult:
    """A user's credentials; an error where one in the store is damaged."""
    stored = configs.overrides(USERS, name)
    try:
        infos = [
            CredentialInfo(mechanism=mechanism, iterations=parse_credential(stored[sasl_name]).iterations)
            for sasl_name, mechanism in SCRAM_MECHANISMS.items()
            if sasl_name in stored
        ]
    except ValueError as error:
        return _failed(name, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)))
    return DescribeUserScramCredentialsResult(user=name, credential_infos=infos)


def _failed(name: str, error: KafkaError) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(user=name, error_code=error.code, error_message=error.message)


def error_response(
    request: DescribeUserScramCredentialsRequest, error: KafkaError
) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(error_code=error.code, error_message=error.message)
