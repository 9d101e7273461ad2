"""The result of an operation of the active controller: the metadata records and the response."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Generic, TypeVar

from ....base.errors import ErrorCode, KafkaError
from ....wire.metadata_records import VersionedRecord

MAX_RECORDS = 10_000
"""More of one operation are refused; so a batch of the log stays below its limit (Kafka's MAX_RECORDS_PER_USER_OP)."""

Response = TypeVar("Response", covariant=True)


@dataclasses.dataclass(frozen=True)
class ControllerResult(Generic[Response]):
    """What an operation writes and responds (Kafka's ControllerResult)."""

    records: Sequence[VersionedRecord]
    response: Response
    is_atomic: bool = True
    """Whether all records stand in one batch of the log, so that no node ever has a part of them only."""


def bounded(records: Sequence[VersionedRecord]) -> Sequence[VersionedRecord]:
    """The records of what a client has asked for. Raises KafkaError POLICY_VIOLATION if they are more than MAX_RECORDS."""
    if len(records) > MAX_RECORDS:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    return records
