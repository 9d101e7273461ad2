"""The common part of ConsumerGroupDescribe and ShareGroupDescribe: each group succeeds or fails by itself.

A group with a topic in its assignments that the client may not describe is refused, for the members cannot be shown without it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol, TypeVar

from ..base.errors import ErrorCode, KafkaError
from ..security.acl import Operation
from .call import Call
from .rights import GROUP, TOPIC, allowed_names, authorized_operations, check


class _DescribedGroup(Protocol):
    error_code: int
    authorized_operations: int


G = TypeVar("G", bound=_DescribedGroup)


async def describe_each(
    call: Call,
    group_ids: Iterable[str],
    describe: Callable[[str], Awaitable[G]],
    topics_of: Callable[[G], set[str]],
    refused: Callable[[str, KafkaError], G],
    *,
    with_operations: bool,
) -> list[G]:
    """A result for each group id: of ``describe``, or of ``refused`` with the error. ``topics_of``: names in its assignments."""
    groups = []
    for group_id in group_ids:
        try:
            check(call, Operation.DESCRIBE, GROUP, group_id)
            if not group_id:
                raise KafkaError(ErrorCode.INVALID_GROUP_ID)
            group = await describe(group_id)
            topics = topics_of(group)
            if allowed_names(call, Operation.DESCRIBE, TOPIC, topics) != topics:
                why = "The group has described topic(s) that the client is not authorized to describe."
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, why)
        except KafkaError as error:
            group = refused(group_id, error)
        if with_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = authorized_operations(call, GROUP, group_id)
        groups.append(group)
    return groups
