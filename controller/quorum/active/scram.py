"""Changes to the SCRAM credentials of users (KIP-554, KIP-900; Kafka's ScramControlManager).

A request has for each user one change at the most. The changes of one user are independent of those of the others.
"""

from __future__ import annotations

from ....base.errors import ErrorCode, KafkaError
from ....metadata.image import ClusterImage
from ....security.scram import (
    ScramMechanism,
    altered_twice,
    check_iterations,
    checked_mechanism,
    credential_from_salted_password,
)
from ....wire.messages.access_records import RemoveUserScramCredentialRecord
from ....wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ....wire.metadata_records import VersionedRecord
from .. import metadata_version
from ..snapshot_records import credential_record
from .result import ControllerResult, bounded

_Change = ScramCredentialDeletion | ScramCredentialUpsertion


def alter_scram_credentials(
    image: ClusterImage, request: AlterUserScramCredentialsRequest
) -> ControllerResult[AlterUserScramCredentialsResponse]:
    """A user that is named twice gets DUPLICATE_RESOURCE, unless the change before has another error."""
    has_scram = metadata_version.has_scram(metadata_version.finalized_level(image.features))
    changes: dict[str, _Change] = {}
    refused: dict[str, KafkaError] = {}
    wanted: list[_Change] = [*request.deletions, *request.upsertions]
    for change in wanted:
        if change.name in refused:
            continue
        try:
            if changes.pop(change.name, None) is not None:
                raise altered_twice()
            if not has_scram:
                why = "The current metadata.version does not support SCRAM"
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, why)
            _check(image, change)
        except KafkaError as error:
            refused[change.name] = error
        else:
            changes[change.name] = change
    results = [AlterUserScramCredentialsResult(user=name, error_message=None) for name in changes]
    results += [
        AlterUserScramCredentialsResult(user=name, error_code=error.code, error_message=error.message)
        for name, error in refused.items()
    ]
    records = [_record(change) for change in changes.values()]
    return ControllerResult(bounded(records), AlterUserScramCredentialsResponse(results=results))


def _check(image: ClusterImage, change: _Change) -> None:
    """Raises KafkaError."""
    mechanism = checked_mechanism(change.name, change.mechanism)
    if isinstance(change, ScramCredentialUpsertion):
        check_iterations(change.iterations)
    elif mechanism not in image.scram.get(change.name, {}):
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")


def _record(change: _Change) -> VersionedRecord:
    if isinstance(change, ScramCredentialDeletion):
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism), 0
    mechanism = ScramMechanism(change.mechanism)
    credential = credential_from_salted_password(
        mechanism, bytes(change.salt), bytes(change.salted_password), change.iterations
    )
    return credential_record(change.name, mechanism, credential), 0
