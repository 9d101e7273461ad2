"""Errors of jobs as one line that says what to do, instead of Spark's long ones with Java's stack trace."""

from __future__ import annotations

import re

_OTHER_CHECKPOINT = "undo the change, or name another checkpoint and begin again"
_KNOWN: tuple[tuple[str, str], ...] = (
    (
        r"Topic (?P<topic>\S+) not present in metadata after",
        "the topic {topic} does not exist on this broker: create it before it is written to",
    ),
    (
        r"UnknownTopicOrPartitionException",
        "unknown topic: one of the topics to read does not exist on this broker",
    ),
    (
        r"Partitions Set\((?P<which>[^)]*)\) have been deleted",
        (
            "the checkpoint has offsets of {which}, which are not read any more: the topic was deleted, or the checkpoint "
            "belongs to other topics. Name another checkpoint, or turn fail-on-data-loss off to continue with the rest"
        ),
    ),
    (
        r"Some data may have been lost(?:[\s\S]*?Reason: (?P<why>.*?)\.?(?: SQLSTATE.*)?(?:\n|$))?",
        "data may have been lost: {why} (turn fail-on-data-loss off to continue with the rest)",
    ),
    (
        r"There are \[(?P<old>\d+)\] sources in the checkpoint offsets and now there are \[(?P<new>\d+)\]",
        f"the checkpoint belongs to a job with another number of sources ({{old}}, now {{new}}): {_OTHER_CHECKPOINT}",
    ),
    (
        r"STATE_STORE_(?:KEY|VALUE)_SCHEMA_NOT_COMPATIBLE|STREAMING_STATEFUL_OPERATOR_NOT_MATCH|Provided schema doesn't match",
        f"the checkpoint holds the state of other columns or steps than these: {_OTHER_CHECKPOINT}",
    ),
    (
        r"same topic partitions in pre-fetched offset",
        f"the checkpoint belongs to other topics, or partitions were added meanwhile: run it again, or {_OTHER_CHECKPOINT}",
    ),
    (
        r"CONCURRENT_(?:QUERY|STREAM_LOG_UPDATE)|Multiple streaming queries are concurrently using",
        "another run uses the same checkpoint: wait for its end, or name another checkpoint",
    ),
    (
        r"The message is (?P<size>\d+) bytes when serialized which is larger than (?P<limit>\d+)",
        (
            "a record of {size} bytes is larger than the producer sends ({limit}): its option kafka.max.request.size, and the "
            "topic's max.message.bytes, say how large one may be"
        ),
    ),
    (
        r"No space left on device",
        "no space left on device: the output, the checkpoint and Spark's temporary files (spark.local.dir) need some",
    ),
    (
        r"Java heap space|GC overhead limit exceeded",
        "Spark is out of memory: --setting spark.driver.memory=4g gives it more",
    ),
    (
        r"Timed out waiting for a node assignment|Timed out waiting to send the call",
        "the brokers do not answer any more",
    ),
)
_NOISE = (
    r"^\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ",
    r"^Job aborted due to stage failure: .*?Lost task \S+ in stage \S+ \(TID \d+\) \(.*?\): ",
    r"^(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error): ",
    r"\.? SQLSTATE: \w+",
    r";$",
)


class JobError(RuntimeError):
    """A job cannot start or go on. ``str()`` is one line."""


def explain(text: str) -> str:
    """The error in one line."""
    for pattern, line in _KNOWN:
        found = re.search(pattern, text)
        if found:
            return line.format_map({key: value or "records were deleted" for key, value in found.groupdict().items()})
    first = next((line.strip() for line in text.splitlines() if line.strip()), "the query failed")
    for pattern in _NOISE:
        first = re.sub(pattern, "", first)
    return first


def explain_task(text: str) -> str:
    """The error that a task's Python code raised, found in Spark's text; without one as ``explain``."""
    told = re.search(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)", text)
    return told[1] if told else explain(text)
