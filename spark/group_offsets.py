"""Commits of a job's position to a consumer group, for tools that show lag: Spark's source commits nothing.

Spark uses its checkpoint and never reads the group. The committed offset of a partition is the lowest that any of the
queries has reached, so the group's lag is that of the slowest one. The group has no members: if a consumer has joined it,
the brokers refuse the commits, and the job logs that once and goes on. If a broker does not answer, the commit is repeated
with the next micro-batch, and at the end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from .bootstrap_servers import kafka_python

if TYPE_CHECKING:
    from types import TracebackType

    from .query import Partition

_LAST_TRIES_S = 10.0
_BETWEEN_TRIES_S = 0.2
_CONNECT_MS = 5_000
logger = logging.getLogger(__name__)


class GroupOffsets:
    """The offsets of one group on one cluster. A context manager, which closes the connection at its end."""

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
        """Note how far the query ``name`` has read, and commit what that changes."""
        self._read[name] = {**self._read.get(name, {}), **read}
        self._commit_changes()

    def _commit_last(self) -> None:
        """Commit the rest, with repetitions for a while: the coordinator of a new cluster may not be available at once."""
        deadline = time.monotonic() + _LAST_TRIES_S
        while self._commit_changes() and time.monotonic() < deadline:
            time.sleep(_BETWEEN_TRIES_S)
        if self._commit_changes():
            logger.warning("the last offsets could not be committed to the group %s", self._group_id)

    def _commit_changes(self) -> bool:
        """Commit what has changed. Returns whether something is still to be committed."""
        wanted = self._behind_all()
        changed = {where: offset for where, offset in wanted.items() if self._committed.get(where) != offset}
        if changed and not self._is_refused:
            return not self._commit(changed)
        return False

    def _behind_all(self) -> dict[Partition, int]:
        # A group has one offset per partition: that of the slowest of the queries that read the topic.
        behind: dict[Partition, int] = {}
        for read in self._read.values():
            for where, offset in read.items():
                behind[where] = min(offset, behind.get(where, offset))
        return behind

    def _commit(self, offsets: Mapping[Partition, int]) -> bool:
        """Returns whether that is settled: the offsets are committed, or never will be."""
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
    """A context with the group; with None if it has no name."""
    return GroupOffsets(bootstrap_servers, group_id) if group_id else nullcontext()
