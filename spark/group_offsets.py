"""Commits how far a job has read to a consumer group, for the tools that show lag: Spark's source commits nothing.

Spark goes by its checkpoint and never looks at the group. What is committed is what every query that reads a partition has
behind it, so the group's lag is that of the slowest. The group has no members meanwhile: with some of a consumer's own in
it, the brokers refuse, and the job says so once and goes on.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress

Partition = tuple[str, int]
logger = logging.getLogger(__name__)


def end_offsets(progress: StreamingQueryProgress) -> dict[Partition, int]:
    """Where a micro-batch ended in each partition, over all sources of the query that are topics."""
    ends: dict[Partition, int] = {}
    for source in progress["sources"]:
        if not source["description"].startswith("KafkaV2"):
            continue
        by_topic = source["endOffset"]
        if isinstance(by_topic, str):
            by_topic = json.loads(by_topic)
        for topic, partitions in (by_topic or {}).items():
            for partition, offset in partitions.items():
                where = topic, int(partition)
                ends[where] = min(offset, ends.get(where, offset))
    return ends


class GroupOffsets:
    """The offsets of one group on one cluster."""

    def __init__(self, bootstrap_servers: str, group_id: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._group_id = group_id
        self._ends: dict[str, Mapping[Partition, int]] = {}
        self._committed: dict[Partition, int] = {}
        self._is_refused = False

    def note(self, name: str, progress: StreamingQueryProgress) -> None:
        """Query ``name`` has finished a micro-batch; commit what that changes."""
        self._ends[name] = {**self._ends.get(name, {}), **end_offsets(progress)}
        wanted = self._behind_all()
        changed = {where: offset for where, offset in wanted.items() if self._committed.get(where) != offset}
        if changed and not self._is_refused:
            self._commit(changed)

    def _behind_all(self) -> dict[Partition, int]:
        behind: dict[Partition, int] = {}
        for ends in self._ends.values():
            for where, offset in ends.items():
                behind[where] = min(offset, behind.get(where, offset))
        return behind

    def _commit(self, offsets: Mapping[Partition, int]) -> None:
        from kafka import KafkaAdminClient, TopicPartition
        from kafka.errors import KafkaError, NoError
        from kafka.structs import OffsetAndMetadata

        wanted = {TopicPartition(*where): OffsetAndMetadata(offset, "", -1) for where, offset in offsets.items()}
        try:
            admin = KafkaAdminClient(bootstrap_servers=self._bootstrap_servers.split(","))
            try:
                refusals = set(admin.alter_group_offsets(self._group_id, wanted).values()) - {NoError}
            finally:
                admin.close()
        except KafkaError as error:
            refusals = {type(error)}
        if refusals:
            self._is_refused = True
            why = ", ".join(sorted(error.__name__ for error in refusals))
            logger.warning("no more offsets are committed to the group %s: %s", self._group_id, why)
        else:
            self._committed.update(offsets)
