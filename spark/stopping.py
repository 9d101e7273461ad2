"""Stops a streaming query between two of its micro-batches: Spark's ``stop`` breaks off the one under way.

To Parquet a batch broken off does no harm, but a topic has some of its records then, and gets them once more with the next
run. So the query is held where it would plan its next batch, which it does under a lock of its own (a fair one, that it
passes on at the end of each batch); what it would still run is cancelled beforehand; and only then it is stopped.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_STEP_S = 0.01
_WAIT_NS = 1_000_000_000


def finish_batch(query: StreamingQuery) -> None:
    """Wait for the end of the micro-batch that is under way, and stop the query.

    Another thread may read the query's progress meanwhile, and wait for its end. The lock belongs to a thread of the JVM,
    of which each thread here has its own.
    """
    execution = query._jsq.streamingQuery()
    lock, batch_done = execution.awaitProgressLock(), execution.awaitProgressLockCondition()
    stopping = threading.Thread(target=query.stop, daemon=True)
    lock.lock()
    try:
        while query.isActive and query.status["isTriggerActive"]:
            batch_done.awaitNanos(_WAIT_NS)
        if query.isActive:
            execution.sparkSession().sparkContext().cancelJobGroupAndFutureJobs(str(query.runId))
            stopping.start()
            # Until it knows that it is being stopped: else it would take its cancelled jobs for a failure.
            while query.isActive:
                time.sleep(_STEP_S)
    finally:
        lock.unlock()
