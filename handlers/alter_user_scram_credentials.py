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
from ..security.scram import (
    ScramCredential,
    ScramMechanism,
    altered_twice,
    check_iterations,
    checked_mechanism,
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
from .controller_requests import check_is_controller


async def handle(call: Call, request: AlterUserScramCredentialsRequest) -> AlterUserScramCredentialsResponse:
    check_is_controller(call)
    await call.flush()
    outcome: dict[str, KafkaError | None] = {}
    for name, (deletions, upsertions) in _by_user(request).items():
        try:
            _check(name, deletions, upsertions)
            removed = [ScramMechanism(deletion.mechanism) for deletion in deletions]
            await call.broker.commands.change_credentials(name, removed, dict(map(_credential, upsertions)))
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
    named: Counter[ScramMechanism] = Counter()
    for number in (*(each.mechanism for each in deletions), *(each.mechanism for each in upsertions)):
        named[checked_mechanism(name, number)] += 1
    for upsertion in upsertions:
        check_iterations(upsertion.iterations)
        if not upsertion.salted_password or not upsertion.salt:
            raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Empty salt or salted password")
    if max(named.values()) > 1:
        raise altered_twice()


def _credential(upsertion: ScramCredentialUpsertion) -> tuple[ScramMechanism, ScramCredential]:
    mechanism = ScramMechanism(upsertion.mechanism)
    salt, salted_password = bytes(upsertion.salt), bytes(upsertion.salted_password)
    return mechanism, credential_from_salted_password(mechanism, salt, salted_password, upsertion.iterations)


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
