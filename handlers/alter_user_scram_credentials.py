"""AlterUserScramCredentials (key 51): sets and removes SCRAM credentials of users (KIP-554).

Behaviour: the controller does it (NOT_CONTROLLER). A client sends salt and salted password, never the password; the keys derived
from them are stored, beside the user's quotas. All of a user's changes are made together, or none: an empty name, or iterations
below 4,096 or above 16,384, are UNACCEPTABLE_CREDENTIAL; an unknown mechanism UNSUPPORTED_SASL_MECHANISM; the same credential
twice DUPLICATE_RESOURCE; removing one that does not exist RESOURCE_NOT_FOUND. The changes of other users are still made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ..base.errors import ErrorCode, KafkaError
from ..controller.zookeeper.config_store import USERS
from ..security.scram import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramMechanism,
    credential_from_salted_password,
)
from ..wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from .call import Call

_MECHANISMS = {int(mechanism): mechanism for mechanism in ScramMechanism}


async def handle(call: Call, request: AlterUserScramCredentialsRequest) -> AlterUserScramCredentialsResponse:
    if not call.broker.controller.is_active:
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster.")
    await call.flush()
    outcome: dict[str, KafkaError | None] = {}
    for name, (deletions, upsertions) in _by_user(request).items():
        try:
            _check(name, deletions, upsertions)
            await call.broker.configs.change(USERS, name, _Alteration(deletions, upsertions))
            outcome[name] = None
        except KafkaError as error:
            outcome[name] = error
    return _response(outcome)


_Changes = tuple[list[ScramCredentialDeletion], list[ScramCredentialUpsertion]]


def _by_user(request: AlterUserScramCredentialsRequest) -> dict[str, _Changes]:
    changes: dict[str, _Changes] = {}
    for deletion in request.deletions:
        changes.setdefault(deletion.name, ([], []))[0].append(deletion)
    for upsertion in request.upsertions:
        changes.setdefault(upsertion.name, ([], []))[1].append(upsertion)
    return changes


def _check(name: str, deletions: list[ScramCredentialDeletion], upsertions: list[ScramCredentialUpsertion]) -> None:
    """Raises KafkaError."""
    if not name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    named = Counter([*(change.mechanism for change in deletions), *(change.mechanism for change in upsertions)])
    if named.keys() - _MECHANISMS.keys():
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    for upsertion in upsertions:
        if upsertion.iterations < MIN_ITERATIONS:
            raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
        if upsertion.iterations > MAX_ITERATIONS:
            raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
        if not upsertion.salted_password or not upsertion.salt:
            raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Empty salt or salted password")
    if max(named.values()) > 1:
        why = "A user credential cannot be altered twice in the same request"
        raise KafkaError(ErrorCode.DUPLICATE_RESOURCE, why)


class _Alteration:
    """Changes the credentials among all that is set on a user; quotas stay as they are."""

    def __init__(self, deletions: list[ScramCredentialDeletion], upsertions: list[ScramCredentialUpsertion]) -> None:
        self._deleted = [_MECHANISMS[deletion.mechanism].sasl_name for deletion in deletions]
        self._set = {_MECHANISMS[upsertion.mechanism].sasl_name: _rendered(upsertion) for upsertion in upsertions}

    def __call__(self, before: Mapping[str, str]) -> dict[str, str]:
        if not before.keys() >= set(self._deleted):
            why = "Attempt to delete a user credential that does not exist"
            raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, why)
        return {name: value for name, value in before.items() if name not in self._deleted} | self._set


def _rendered(upsertion: ScramCredentialUpsertion) -> str:
    mechanism = _MECHANISMS[upsertion.mechanism]
    salt, salted_password = bytes(upsertion.salt), bytes(upsertion.salted_password)
    return credential_from_salted_password(mechanism, salt, salted_password, upsertion.iterations).render()


def _response(outcome: Mapping[str, KafkaError | None]) -> AlterUserScramCredentialsResponse:
    results = [
        AlterUserScramCredentialsResult(user=name)
        if error is None
        else AlterUserScramCredentialsResult(user=name, error_code=error.code, error_message=error.message)
        for name, error in outcome.items()
    ]
    return AlterUserScramCredentialsResponse(results=results)


def error_response(request: AlterUserScramCredentialsRequest, error: KafkaError) -> AlterUserScramCredentialsResponse:
    return _response(dict.fromkeys(_by_user(request), error))
