"""Options of Spark's ``kafka`` source for jobs that read topics, and checks of the job's own options."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from .bootstrap_servers import spark_options
from .failures import JobError

# Spark's reader requests both ends of the partition after each poll, so a poll should return many records. At the end of a
# partition that request waits behind a fetch that was sent before, and which waits for records: half a second by default.
READER_DEFAULTS = {"kafka.max.poll.records": "20000", "kafka.fetch.max.wait.ms": "50"}


def reader_options(
    bootstrap_servers: str,
    topics: Sequence[str],
    pattern: str | None,
    *,
    fail_on_data_loss: bool,
    max_offsets_per_trigger: int | None,
) -> dict[str, str]:
    """Options to read these topics, or with a pattern those whose whole name matches, with headers; without where to begin."""
    options = {
        **READER_DEFAULTS,
        **spark_options(bootstrap_servers),
        "failOnDataLoss": str(fail_on_data_loss).lower(),
        "includeHeaders": "true",
    }
    if pattern is not None:
        options["subscribePattern"] = pattern
    else:
        options["subscribe"] = ",".join(topics)
    if max_offsets_per_trigger is not None:
        options["maxOffsetsPerTrigger"] = str(max_offsets_per_trigger)
    return options


def every(seconds: float) -> str:
    """The ``processingTime`` of a trigger."""
    return f"{int(seconds * 1000)} milliseconds"


def check_choice(topics: Sequence[str], pattern: str | None) -> None:
    """Raise JobError unless topics are chosen in exactly one way."""
    if bool(topics) == (pattern is not None):
        raise JobError("say which topics: either by name or by pattern")


def check_pattern(what: str, pattern: str | None) -> None:
    """Raise JobError, which begins with ``what``, for an invalid pattern."""
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise JobError(f"{what} {pattern!r} is not a regular expression: {error}") from None


def check_offsets(text: str) -> None:
    """Raise JobError unless ``text`` is Spark's JSON: topic to partition to offset (-2 earliest, -1 latest)."""
    try:
        by_topic = json.loads(text)
        good = all(isinstance(offset, int) for partitions in by_topic.values() for offset in partitions.values())
    except (ValueError, AttributeError):
        good = False
    if not good:
        raise JobError(
            f'starting offsets are earliest, latest or JSON like {{"orders": {{"0": 100, "1": -2}}}}, not {text!r}'
        )
