"""Stops a streaming query between two of its micro-batches: Spark's ``stop`` interrupts the current one.

For Parquet files an interrupted batch does no harm, but a topic has some of its records then, and gets them again in the next
run. So this takes the lock under which the query plans its next batch (a fair lock, which it releases at the end of each
batch), cancels in advance what the query would run next, and only then stops it.
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
    """Wait for the end of the current micro-batch, and stop the query.

    Another thread may read the query's progress meanwhile, and wait for its end. The lock belongs to a thread of the JVM;
    each thread here has its own one there.
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
            # Until the query knows that it is being stopped: otherwise it would count its cancelled jobs as a failure.
            while query.isActive:
                time.sleep(_STEP_S)
    finally:
        lock.unlock()
