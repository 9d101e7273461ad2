"""The one line that becomes of Spark's errors, as Spark 4.0 words them."""

from __future__ import annotations

import pytest

from ottla.spark.failures import explain

FAILED = "[STREAM_FAILED] Query [id = 8755cf31, runId = 03c51040] terminated with exception: "
TASK = (
    "Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: "
    "Lost task 0.0 in stage 3.0 (TID 4) (localhost executor driver): "
)
LOST = "Some data may have been lost because they are not available in Kafka any more;\neither the data was aged out\n"
STATE = "Provided key schema does not match existing state key schema.\nPlease check number and type of fields.\n"
STACK = " SQLSTATE: XXKST\n=== Streaming Query ===\nIdentifier: p.o\n\tat org.apache.spark.X\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (FAILED + "Disk quota exceeded" + STACK, "Disk quota exceeded"),
        (
            FAILED + "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this",
            "unknown topic: one of the topics to read does not exist on this broker",
        ),
        (
            FAILED + LOST + "Reason: Partition orders-0 offset was changed from 10 to 5." + STACK,
            (
                "data may have been lost: Partition orders-0 offset was changed from 10 to 5 "
                "(turn fail-on-data-loss off to continue with the rest)"
            ),
        ),
        (
            LOST,
            "data may have been lost: records were deleted (turn fail-on-data-loss off to continue with the rest)",
        ),
        (
            FAILED + LOST + "Reason: Partitions Set(a-0) have been deleted." + STACK,
            (
                "the checkpoint has offsets of a-0, which are not read any more: the topic was deleted, or the checkpoint "
                "belongs to other topics. Name another checkpoint, or turn fail-on-data-loss off to continue with the rest"
            ),
        ),
        (
            FAILED + "assertion failed: There are [1] sources in the checkpoint offsets and now there are [2] sources",
            (
                "the checkpoint belongs to a job with another number of sources (1, now 2): undo the change, or name another "
                "checkpoint and begin again"
            ),
        ),
        (
            FAILED + "[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] " + STATE + STACK,
            (
                "the checkpoint holds the state of other columns or steps than these: undo the change, or name another "
                "checkpoint and begin again"
            ),
        ),
        (
            FAILED + TASK + "org.apache.kafka.common.errors.TimeoutException: Topic copy not present in metadata after "
            "60000 ms.\n\nDriver stacktrace:" + STACK + "Caused by: UnknownTopicOrPartitionException",
            "the topic copy does not exist on this broker: create it before it is written to",
        ),
        (
            FAILED + TASK + "org.apache.kafka.common.errors.RecordTooLargeException: The message is 3000088 bytes when "
            "serialized which is larger than 1048576, which is the value of the max.request.size configuration.",
            (
                "a record of 3000088 bytes is larger than the producer sends (1048576): its option kafka.max.request.size, "
                "and the topic's max.message.bytes, say how large one may be"
            ),
        ),
        (
            FAILED + TASK + "java.io.IOException: No space left on device" + STACK,
            "no space left on device: the output, the checkpoint and Spark's temporary files (spark.local.dir) need some",
        ),
        (
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `x` cannot be resolved. SQLSTATE: 42703; line 1 pos 7;\n'Project",
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `x` cannot be resolved; line 1 pos 7",
        ),
        ("\njava.io.IOException: mkdir of file:/x failed", "mkdir of file:/x failed"),
        ("", "the query failed"),
    ],
)
def test_one_line_of_an_error(text: str, line: str) -> None:
    assert explain(text) == line
