"""Commits how far a job has read to a consumer group, for the tools that show lag: Spark's source commits nothing.

Spark goes by its checkpoint and never looks at the group. What is committed is what every query that reads a partition has
behind it, so the group's lag is that of the slowest. The group has no members meanwhile: with some of a consumer's own in
it, the brokers refuse, and the job says so once and goes on. A broker that does not answer is asked again with the next
micro-batch, and at the end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from .brokers import kafka_python

if TYPE_CHECKING:
    from types import TracebackType

    from .query import Partition

_LAST_TRIES_S = 10.0
_BETWEEN_TRIES_S = 0.2
_CONNECT_MS = 5_000
logger = logging.getLogger(__name__)


class GroupOffsets:
    """The offsets of one group on one cluster. A context manager: the connection is kept until its end."""

    def __init__(self, bootstrap_servers: str, group_id: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._group_id = group_id
        self._read: dict[str, Mapping[Partition, int]] = {}
        self._committed: dict[Partition, int] = {}
        self._admin: Any = None
        self._is_refused = False

    def __enter__(self) -> GroupOffsets:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self._commit_last()
        self._disconnect()

    def note(self, name: str, read: Mapping[Partition, int]) -> None:
        """Query ``name`` has read so far; commit what that changes."""
        self._read[name] = {**self._read.get(name, {}), **read}
        self._commit_changes()

    def _commit_last(self) -> None:
        """What is not committed yet, again and again for a while: a new cluster's coordinator may not be there at once."""
        deadline = time.monotonic() + _LAST_TRIES_S
        while self._commit_changes() and time.monotonic() < deadline:
            time.sleep(_BETWEEN_TRIES_S)
        if self._commit_changes():
            logger.warning("the last offsets could not be committed to the group %s", self._group_id)

    def _commit_changes(self) -> bool:
        """Whether something should be, and is not."""
        wanted = self._behind_all()
        changed = {where: offset for where, offset in wanted.items() if self._committed.get(where) != offset}
        if changed and not self._is_refused:
            return not self._commit(changed)
        return False

    def _behind_all(self) -> dict[Partition, int]:
        behind: dict[Partition, int] = {}
        for read in self._read.values():
            for where, offset in read.items():
                behind[where] = min(offset, behind.get(where, offset))
        return behind

    def _commit(self, offsets: Mapping[Partition, int]) -> bool:
        """Whether that is settled: they are committed, or they never will be."""
        from kafka import KafkaAdminClient, TopicPartition
        from kafka.errors import KafkaError, NoError
        from kafka.structs import OffsetAndMetadata

        wanted = {TopicPartition(*where): OffsetAndMetadata(offset, "", -1) for where, offset in offsets.items()}
        try:
            if self._admin is None:
                way_in = kafka_python(self._bootstrap_servers)
                self._admin = KafkaAdminClient(**way_in, bootstrap_timeout_ms=_CONNECT_MS)
            refusals = set(self._admin.alter_group_offsets(self._group_id, wanted).values()) - {NoError}
        except KafkaError as error:
            refusals = {type(error)}
        if not refusals:
            self._committed.update(offsets)
            return True
        why = ", ".join(sorted(error.__name__ for error in refusals))
        if all(error.retriable for error in refusals):
            logger.info("no offsets were committed to the group %s this time: %s", self._group_id, why)
            self._disconnect()
            return False
        self._is_refused = True
        logger.warning("no more offsets are committed to the group %s: %s", self._group_id, why)
        return True

    def _disconnect(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None


def committing(bootstrap_servers: str, group_id: str) -> AbstractContextManager[GroupOffsets | None]:
    """The group for the length of a block; None if it has no name."""
    return GroupOffsets(bootstrap_servers, group_id) if group_id else nullcontext()
