"""The refreshes of regular expressions that are under way: topics are looked up by a worker thread, beside the requests.

A heartbeat begins a refresh where one is due (``expression_refresh``), with the rights of its member: topics that it may not
describe are left out. One refresh of a group runs at a time. Where it cannot be finished, what was known before stays.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import trio

from ..base.errors import KafkaError
from ..base.seams import Workers
from ..base.worker_errors import run_expecting
from ..replication.coordinator_log import CoordinatorTime
from ..replication.coordinator_shards import CoordinatorShards
from .consumer_group_writes import write_change
from .expression_refresh import is_refresh_due, resolved_change
from .shard import GroupCoordinatorShard
from .topic_expressions import compiled, describable_topics, matching_topics
from .worker_steps import WorkerSteps

logger = logging.getLogger(__name__)

MayDescribe = Callable[[str], bool]
"""Whether a client may know of a topic, by its name."""


class ExpressionRefreshes:
    """Of the groups of one broker. ``run`` in a task of its own."""

    def __init__(
        self, shards: CoordinatorShards[GroupCoordinatorShard], now: Callable[[], CoordinatorTime], workers: Workers
    ) -> None:
        self._shards = shards
        self._now = now
        self._workers = workers
        self._steps = WorkerSteps(workers)
        self._under_way: set[str] = set()
        """Ids of groups."""
        self._nursery: trio.Nursery | None = None

    async def run(self) -> None:
        """Carry refreshes out, for ever."""
        async with trio.open_nursery() as self._nursery:
            await trio.sleep_forever()

    async def check(self, expression: str) -> None:
        """KafkaError INVALID_REGULAR_EXPRESSION where it is none. A hostile one takes long to read."""
        await run_expecting(self._workers, KafkaError, compiled, expression)

    def begin_if_due(self, shard: GroupCoordinatorShard, group_id: str, may_describe: MayDescribe | None) -> None:
        """Look at the expressions of a group after a heartbeat. ``may_describe`` None: the client may know of every topic."""
        group = shard.consumer_group(group_id)
        if group is None or self._nursery is None or group_id in self._under_way:
            return
        context = shard.context
        expressions = group.expression_subscribers.newest().keys()
        if not any(expressions):
            return
        interval_ms = context.settings.regex_refresh_interval_ms
        now_ms = self._now().wall_ms
        if is_refresh_due(group, expressions, now_ms, context.topics.newest_topic_version, interval_ms):
            self._under_way.add(group_id)
            self._nursery.start_soon(self._refresh, shard, group_id, list(expressions), may_describe)

    async def _refresh(
        self, shard: GroupCoordinatorShard, group_id: str, expressions: list[str], may_describe: MayDescribe | None
    ) -> None:
        try:
            await self._look_up(shard, group_id, expressions, may_describe)
        except KafkaError as error:
            logger.error(
                "Group %s: the topics of its regular expressions cannot be brought up to date: %s", group_id, error
            )
        finally:
            self._under_way.discard(group_id)

    async def _look_up(
        self, shard: GroupCoordinatorShard, group_id: str, expressions: list[str], may_describe: MayDescribe | None
    ) -> None:
        topics, now = shard.context.topics, self._now()
        version = topics.version
        found = await self._steps.finished(matching_topics(expressions, list(topics.names())))
        if may_describe is not None:
            steps = describable_topics(found, may_describe)
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    found = end.value
                    break
                await trio.lowlevel.checkpoint()
        group = shard.consumer_group(group_id)
        if group is not None and self._shards.is_current(shard):
            change = resolved_change(group, found, version, now.wall_ms, topics.hash_of)
            write_change(shard, change, self._now())
