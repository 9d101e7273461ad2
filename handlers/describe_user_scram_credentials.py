"""DescribeUserScramCredentials (key 50): which users have SCRAM credentials, with how many iterations (KIP-554).

Behaviour: no list, or an empty one, asks for every user who has credentials. A named user without any is RESOURCE_NOT_FOUND, as
is an empty name; one named twice is DUPLICATE_RESOURCE, once. Salts and keys are never in the response. Any broker answers.
"""

from __future__ import annotations

from collections import Counter

from ..base.errors import ErrorCode, KafkaError
from ..metadata.image import ClusterImage
from ..security.scram import UnusableCredential
from ..wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from .call import NodeCall


async def handle(call: NodeCall, request: DescribeUserScramCredentialsRequest) -> DescribeUserScramCredentialsResponse:
    image = call.node.metadata.image
    if not request.users:
        return DescribeUserScramCredentialsResponse(results=_everybody(image))
    counts = Counter(user.name for user in request.users)
    results = [_named(image, name, count) for name, count in counts.items()]
    return DescribeUserScramCredentialsResponse(results=results)


def _everybody(image: ClusterImage) -> list[DescribeUserScramCredentialsResult]:
    return [_described(image, name) for name in sorted(image.scram)]


def _named(image: ClusterImage, name: str, count: int) -> DescribeUserScramCredentialsResult:
    if not name:
        return _failed(name, KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "Username must not be empty"))
    if count > 1:
        why = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        return _failed(name, KafkaError(ErrorCode.DUPLICATE_RESOURCE, why))
    if name not in image.scram:
        why = f"Attempt to describe a user credential that does not exist: {name}"
        return _failed(name, KafkaError(ErrorCode.RESOURCE_NOT_FOUND, why))
    return _described(image, name)


def _described(image: ClusterImage, name: str) -> DescribeUserScramCredentialsResult:
    """A user's credentials; an error where one cannot be read."""
    infos = []
    for mechanism, credential in image.scram[name].items():
        if isinstance(credential, UnusableCredential):
            return _failed(name, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, credential.reason))
        infos.append(CredentialInfo(mechanism=mechanism, iterations=credential.iterations))
    return DescribeUserScramCredentialsResult(user=name, credential_infos=infos)


def _failed(name: str, error: KafkaError) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(user=name, error_code=error.code, error_message=error.message)


def error_response(
    request: DescribeUserScramCredentialsRequest, error: KafkaError
) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(error_code=error.code, error_message=error.message)
