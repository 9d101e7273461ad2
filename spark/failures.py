"""What a job fails with, in one line that says what to do: Spark's own errors are many lines, most of them Java's stack."""

from __future__ import annotations

import re

_KNOWN: tuple[tuple[str, str], ...] = (
    (
        r"UnknownTopicOrPartitionException",
        "unknown topic: one of the topics to read does not exist on this broker",
    ),
    (
        r"Some data may have been lost[\s\S]*?Reason: (?P<why>.*?)\.?(?:\n|$)",
        "data may have been lost: {why} (--no-fail-on-data-loss goes on with what there is)",
    ),
    (
        r"Some data may have been lost",
        "data may have been lost: records not read yet are gone (--no-fail-on-data-loss goes on with what there is)",
    ),
    (
        r"Topic (?P<topic>\S+) not present in metadata after",
        "the topic {topic}, to be written to, does not exist on this broker: create it",
    ),
)


class JobError(RuntimeError):
    """A job cannot start or go on. ``str()`` is one line."""


def explain(text: str) -> str:
    """One line for people out of Spark's many."""
    for pattern, line in _KNOWN:
        found = re.search(pattern, text)
        if found:
            return line.format(**found.groupdict())
    first = next((line.strip() for line in text.splitlines() if line.strip()), "the query failed")
    first = re.sub(r"^\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ", "", first)
    return re.sub(r" SQLSTATE: \w+$", "", first)
