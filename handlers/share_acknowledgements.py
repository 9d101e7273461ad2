"""Checks and acknowledgements that ShareFetch and ShareAcknowledge have in common.

A partition's acknowledgements are valid as a whole or not at all; one partition's error never fails the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import trio

from ..base.errors import ErrorCode, KafkaError
from ..security.acl import Operation
from ..share_coordinator.state import SharePartitionKey
from ..share_partitions.acknowledgement import RENEW, Acknowledgement
from ..share_partitions.led_partition import Outcome
from ..share_partitions.share_partition import STEP
from .call import Call
from .rights import GROUP, TOPIC, check, may, refusal
from .share_groups import check_enabled

_LONGEST_MEMBER_ID = 36
_FIRST_RENEW_VERSION = 2


class AcknowledgedBatch(Protocol):
    """The struct of either API."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class Answered(NamedTuple):
    """What becomes of a partition's acknowledgements."""

    key: SharePartitionKey
    error: KafkaError | None
    outcome: Outcome | None = None
    """Where they are to be stored, and are not yet."""


def check_member(call: Call, group_id: str | None, member_id: str | None) -> tuple[str, str]:
    """The group and the member of a request. Raises KafkaError."""
    check_enabled(call)
    if group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    check(call, Operation.READ, GROUP, group_id)
    if member_id is None or not 0 < len(member_id) <= _LONGEST_MEMBER_ID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return group_id, member_id


def check_readable(call: Call, key: SharePartitionKey) -> None:
    """Raises KafkaError UNKNOWN_TOPIC_ID, or TOPIC_AUTHORIZATION_FAILED."""
    name = call.broker.metadata.topic_name(key.topic_id)
    if name is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
    if not may(call, Operation.READ, TOPIC, name):
        raise refusal(TOPIC)


async def acknowledge(
    call: Call,
    member_id: str,
    said: Iterable[tuple[SharePartitionKey, Sequence[AcknowledgedBatch]]],
    *,
    is_renew_ack: bool,
) -> list[Answered]:
    """Take what a member says of its records; it is being stored then. Many acknowledgements take several turns."""
    answered = []
    for key, batches in said:
        is_long = len(batches) > STEP
        if is_long:
            await trio.lowlevel.checkpoint()  # to read it has taken long enough
        try:
            check_batches(batches, may_renew=is_renew_ack and call.version >= _FIRST_RENEW_VERSION)
            check_readable(call, key)
            outcome = None
            if batches:
                acknowledgements = [
                    Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types) for batch in batches
                ]
                if is_long:
                    await trio.lowlevel.checkpoint()
                outcome = await call.broker.share_partitions.acknowledge(key, member_id, acknowledgements)
        except KafkaError as error:
            answered.append(Answered(key, error))
        else:
            answered.append(Answered(key, None, outcome))
    return answered


def check_batches(batches: Sequence[AcknowledgedBatch], *, may_renew: bool) -> None:
    """Raises KafkaError INVALID_REQUEST unless they follow each other and say something of each record.

    The first offset of one may be the last one of the batch before, as in Kafka; its record is then not acquired any more.
    """
    before = -1
    highest = RENEW if may_renew else RENEW - 1
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if not before <= first <= last:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"batch {first}-{last} does not follow {before}")
        if len(types) != 1 and len(types) != last - first + 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"batch {first}-{last} has {len(types)} acknowledge types")
        if min(types) < 0 or max(types) > highest:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"batch {first}-{last} has an acknowledge type that is none")
        before = last


async def stored(answered: Iterable[Answered]) -> dict[SharePartitionKey, KafkaError | None]:
    """Return once everything is stored, or is known not to be: the error of each partition, or None."""
    errors: dict[SharePartitionKey, KafkaError | None] = {}
    for key, error, outcome in answered:
        if outcome is not None:
            try:
                await outcome.wait()
            except KafkaError as failed:
                error = failed
        errors[key] = error
    return errors
