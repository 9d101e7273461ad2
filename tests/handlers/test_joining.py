"""What a broker tells clients before a controller has told it of the cluster."""

from __future__ import annotations

import trio

from ottla.base.errors import ErrorCode
from ottla.replication.metadata_cache import MetadataCache

from ..memory_cluster import running


async def test_a_broker_that_was_told_nothing_yet_calls_no_topic_unknown(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(1, 2) as cluster:
        await cluster.create("known", [1])
        # As it is between its registration and the controller's first request, which may be long where that is paused.
        services = cluster.services(2)
        services.metadata = MetadataCache(services.metadata.cluster_id)
        began = trio.current_time()
        answer = await cluster.metadata(2, "known", "other", "no name")
        assert trio.current_time() - began == 5
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [
            ("known", ErrorCode.LEADER_NOT_AVAILABLE),
            ("other", ErrorCode.LEADER_NOT_AVAILABLE),
            ("no name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ]
